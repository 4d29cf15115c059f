"""Models: log factors and priors, knowing nothing of methods and kernels."""
