"""The best of a few candidates where one evaluation is expensive. Nothing here is compiled."""
