"""The experiments of the paper, run again: settings, studies, claims and figures. Nothing else needs it."""
