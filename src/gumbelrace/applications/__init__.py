"""What the commands `arch`, `coreference` and `demo` run: data in, a record out."""
