"""Find the best arm of a finite population."""
