"""Solvers that reach the pooled optimum in a few rounds, one file each; ``base`` tells how they work."""

from unpooled.exact.anderson import AndersonProxGradient
from unpooled.exact.base import ExactSolver
from unpooled.exact.fista import Fista
from unpooled.exact.prox_newton import ProxNewton
from unpooled.exact.sufficient_statistics import SufficientStatistics

__all__ = ["AndersonProxGradient", "ExactSolver", "Fista", "ProxNewton", "SufficientStatistics"]
