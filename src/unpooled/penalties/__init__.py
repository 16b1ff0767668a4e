"""Penalties h = λR: what makes a model sparse, grouped or of low rank."""

from unpooled.penalties.base import Penalty
from unpooled.penalties.elastic_net import ElasticNet
from unpooled.penalties.group import GroupL2
from unpooled.penalties.l1 import L1
from unpooled.penalties.nuclear import Nuclear
from unpooled.penalties.zero import Zero

__all__ = ["L1", "ElasticNet", "GroupL2", "Nuclear", "Penalty", "Zero"]
