"""Federated algorithms, one file each; ``unpooled.algorithms.base`` tells how to write one."""

from unpooled.algorithms.base import Algorithm, State
from unpooled.algorithms.c_fedda import CFedDA
from unpooled.algorithms.fast_fedda import FastFedDA
from unpooled.algorithms.fedavg import FedAvg
from unpooled.algorithms.fedda import FedDA
from unpooled.algorithms.fedmid import FedMiD
from unpooled.algorithms.mc_fedda import MCFedDA
from unpooled.algorithms.scaffold import Scaffold

__all__ = ["Algorithm", "CFedDA", "FastFedDA", "FedAvg", "FedDA", "FedMiD", "MCFedDA", "Scaffold", "State"]
