"""Solvers that reach the pooled optimum in a few rounds, one file each; ``base`` tells how they work."""

from unpooled.algorithms.exact.anderson import AndersonProxGradient
from unpooled.algorithms.exact.base import ExactSolver
from unpooled.algorithms.exact.fista import Fista
from unpooled.algorithms.exact.prox_newton import ProxNewton
from unpooled.algorithms.exact.sufficient_statistics import SufficientStatistics

__all__ = ["AndersonProxGradient", "ExactSolver", "Fista", "ProxNewton", "SufficientStatistics"]
