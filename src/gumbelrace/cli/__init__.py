"""The command line: ``gumbelrace best``, ``gumbelrace sample``."""
