"""``python -m gumbelrace`` is the command line."""

import sys

from gumbelrace.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
