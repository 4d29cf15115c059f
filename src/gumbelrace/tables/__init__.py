"""Tables in files of any size: as columns, or as populations to race on."""
