"""``python -m gumbelrace`` shows the demo."""

import sys

from gumbelrace.demo import main

if __name__ == "__main__":
    sys.exit(main())
