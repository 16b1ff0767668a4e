"""unpooled: sparse and low-rank models fitted to data that stays where it is."""

from typing import TYPE_CHECKING, Any

from unpooled import datasets, engines, losses, metrics, partition, penalties, preprocessing
from unpooled._version import __version__
from unpooled.aggregation import Aggregate, CoordinateMedian, Mean, TrimmedMean
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
from unpooled.algorithms.exact import (
    AndersonProxGradient,
    ExactSolver,
    Fista,
    ProxNewton,
    SufficientStatistics,
)
from unpooled.certificate import Certificate
from unpooled.cross_validation import CrossValidation, cross_validate
from unpooled.data import FederatedData
from unpooled.fit import Fit
from unpooled.kernel import kernel
from unpooled.losses import Huber, LinearLoss, Logistic, Poisson, Softmax, Squared
from unpooled.path import Path, lambda_max, path
from unpooled.penalties import L1, ElasticNet, GroupL2, Nuclear, Penalty, Zero
from unpooled.privacy import CentralDP
from unpooled.problem import Problem
from unpooled.run import Run, Status
from unpooled.runfile import load
from unpooled.selection import information, select
from unpooled.simulate import simulate
from unpooled.solve import solve

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
