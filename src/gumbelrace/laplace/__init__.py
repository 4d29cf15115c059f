"""Posteriors that a normal law is close to: the mode, the law, and chains that test its draws by few rows."""
