"""The paper's experiments: each gives records, which the report shows."""
