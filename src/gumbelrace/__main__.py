"""The command line, as ``gumbelrace`` or ``python -m gumbelrace``.

It works without its packages well enough to name them. Ctrl-C ends it with one line, whenever it comes.
"""

import sys

MISSING = 'gumbelrace: the command line needs the package {}; pip install "gumbelrace[cli]"'
INTERRUPTED = 130


def main() -> int:
    """Run the command line; return the exit status."""
    try:
        from gumbelrace.core.interrupts import INTERRUPTS

        INTERRUPTS.install()
        try:
            return run()
        finally:
            INTERRUPTS.leave_to_system()
    except KeyboardInterrupt:
        print("gumbelrace: interrupted", file=sys.stderr)
        return INTERRUPTED


def run() -> int:
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        print(MISSING.format(error.name), file=sys.stderr)
        return 2
    from gumbelrace.cli.app import app

    app(prog_name="gumbelrace")
    return 0


if __name__ == "__main__":
    sys.exit(main())
