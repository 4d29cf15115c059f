"""Reports: one self-contained HTML page each, with figures that fit a light and a dark screen."""
