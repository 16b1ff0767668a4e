"""unpooled: sparse and low-rank models fitted to data that stays where it is."""

import sys
from typing import TYPE_CHECKING, Any

from unpooled import engines, losses, penalties, preprocessing
from unpooled._version import __version__
from unpooled.aggregation import Aggregate, CoordinateMedian, Mean, TrimmedMean
from unpooled.aggregation.privacy import CentralDP
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
from unpooled.data import FederatedData, datasets, partition
from unpooled.exact import (
    AndersonProxGradient,
    ExactSolver,
    Fista,
    ProxNewton,
    SufficientStatistics,
)
from unpooled.exact.certificate import Certificate
from unpooled.exact.cross_validation import CrossValidation, cross_validate
from unpooled.exact.fit import Fit
from unpooled.exact.path import Path, lambda_max, path
from unpooled.exact.selection import information, select
from unpooled.exact.solve import solve
from unpooled.kernels.compile import kernel
from unpooled.losses import Huber, LinearLoss, Logistic, Poisson, Softmax, Squared
from unpooled.penalties import L1, ElasticNet, GroupL2, Nuclear, Penalty, Zero
from unpooled.problem import Problem
from unpooled.runs import flower, metrics
from unpooled.runs.run import Run, Status
from unpooled.runs.runfile import load
from unpooled.runs.simulate import simulate

if TYPE_CHECKING:  # scikit-learn and LAPACK take a while to import: see __getattr__
    from unpooled import estimators, inference
    from unpooled.estimators import (
        FederatedElasticNet,
        FederatedElasticNetCV,
        FederatedGraphicalLasso,
        FederatedGroupLasso,
        FederatedGroupLassoCV,
        FederatedHuberRegressor,
        FederatedLasso,
        FederatedLassoCV,
        FederatedLogisticRegression,
        FederatedLogisticRegressionCV,
        FederatedMatrixCompletion,
        FederatedPoissonRegressor,
        FederatedTraceRegressor,
    )

# public modules that live deeper in the tree keep their short names: import unpooled.flower
for _module in (datasets, flower, metrics, partition):
    sys.modules[f"unpooled.{_module.__name__.rpartition('.')[2]}"] = _module

__all__ = [
    "L1",
    "Aggregate",
    "Algorithm",
    "AndersonProxGradient",
    "CFedDA",
    "CentralDP",
    "Certificate",
    "CoordinateMedian",
    "CrossValidation",
    "ElasticNet",
    "ExactSolver",
    "FastFedDA",
    "FedAvg",
    "FedDA",
    "FedMiD",
    "FederatedData",
    "FederatedElasticNet",
    "FederatedElasticNetCV",
    "FederatedGraphicalLasso",
    "FederatedGroupLasso",
    "FederatedGroupLassoCV",
    "FederatedHuberRegressor",
    "FederatedLasso",
    "FederatedLassoCV",
    "FederatedLogisticRegression",
    "FederatedLogisticRegressionCV",
    "FederatedMatrixCompletion",
    "FederatedPoissonRegressor",
    "FederatedTraceRegressor",
    "Fista",
    "Fit",
    "GroupL2",
    "Huber",
    "LinearLoss",
    "Logistic",
    "MCFedDA",
    "Mean",
    "Nuclear",
    "Path",
    "Penalty",
    "Poisson",
    "Problem",
    "ProxNewton",
    "Run",
    "Scaffold",
    "Softmax",
    "Squared",
    "State",
    "Status",
    "SufficientStatistics",
    "TrimmedMean",
    "Zero",
    "__version__",
    "cross_validate",
    "datasets",
    "engines",
    "estimators",
    "inference",
    "information",
    "kernel",
    "lambda_max",
    "load",
    "losses",
    "metrics",
    "partition",
    "path",
    "penalties",
    "preprocessing",
    "select",
    "simulate",
    "solve",
]


def __getattr__(name: str) -> Any:
    """The estimators and inference, imported when one is first asked for."""
    from importlib import import_module

    if name in ("estimators", "inference"):
        return import_module(f"unpooled.{name}")
    if name.startswith("Federated") and name in __all__:
        return getattr(import_module("unpooled.estimators"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
