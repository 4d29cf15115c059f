"""The command line, as ``gumbelrace`` or ``python -m gumbelrace``.

It works without its packages well enough to name them.
"""

import sys

MISSING = 'gumbelrace: the command line needs the package {}; pip install "gumbelrace[cli]"'


def main() -> int:
    """Run the command line; return the exit status."""
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
