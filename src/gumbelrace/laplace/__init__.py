"""Posteriors close to a normal law: the mode, the law, and chains that test its draws by few rows."""
