"""Models: log factors and priors, knowing nothing of solvers and kernels."""
