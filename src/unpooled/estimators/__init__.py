"""scikit-learn estimators: ``fit(X, y, clients=site)``. ``base`` describes how they work."""

from unpooled.estimators.base import FederatedEstimator
from unpooled.estimators.elastic_net import FederatedElasticNet, FederatedElasticNetCV
from unpooled.estimators.graphical_lasso import FederatedGraphicalLasso
from unpooled.estimators.group_lasso import FederatedGroupLasso, FederatedGroupLassoCV
from unpooled.estimators.huber import FederatedHuberRegressor
from unpooled.estimators.lasso import FederatedLasso, FederatedLassoCV
from unpooled.estimators.logistic import FederatedLogisticRegression, FederatedLogisticRegressionCV
from unpooled.estimators.matrix_completion import FederatedMatrixCompletion
from unpooled.estimators.poisson import FederatedPoissonRegressor
from unpooled.estimators.trace_regression import FederatedTraceRegressor

__all__ = [
    "FederatedElasticNet",
    "FederatedElasticNetCV",
    "FederatedEstimator",
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
]
