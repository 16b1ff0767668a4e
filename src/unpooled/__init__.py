"""unpooled: sparse and low-rank models fitted to data that stays where it is."""

from unpooled import datasets, engines, losses, metrics, partition, penalties
from unpooled._version import __version__
from unpooled.algorithms import (
    Algorithm,
    CFedDA,
    FastFedDA,
    FedAvg,
    FedDA,
    FedMiD,
    MCFedDA,
    Scaffold,
    State,
)
from unpooled.data import FederatedData
from unpooled.kernel import kernel
from unpooled.losses import Huber, LinearLoss, Logistic, Poisson, Softmax, Squared
from unpooled.penalties import L1, ElasticNet, GroupL2, Nuclear, Penalty, Zero
from unpooled.problem import Problem
from unpooled.run import Run, Status
from unpooled.runfile import load
from unpooled.simulate import simulate

__all__ = [
    "L1",
    "Algorithm",
    "CFedDA",
    "ElasticNet",
    "FastFedDA",
    "FedAvg",
    "FedDA",
    "FedMiD",
    "FederatedData",
    "GroupL2",
    "Huber",
    "LinearLoss",
    "Logistic",
    "MCFedDA",
    "Nuclear",
    "Penalty",
    "Poisson",
    "Problem",
    "Run",
    "Scaffold",
    "Softmax",
    "Squared",
    "State",
    "Status",
    "Zero",
    "__version__",
    "datasets",
    "engines",
    "kernel",
    "load",
    "losses",
    "metrics",
    "partition",
    "penalties",
    "simulate",
]
