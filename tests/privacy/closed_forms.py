"""The Gaussian mechanism, straight from its definition."""

import numpy as np
from scipy import optimize, stats


def gaussian_delta(epsilon, moved, deviation):
    """The hockey-stick divergence of N(0, deviation²) and N(moved, deviation²) at e^ε."""
    mu = moved / deviation
    return stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon + stats.norm.logcdf(-mu / 2 - epsilon / mu))


def gaussian_epsilon(delta, moved, deviation):
    return optimize.brentq(lambda e: gaussian_delta(e, moved, deviation) - delta, 0.0, 500.0, xtol=1e-12)
