"""scikit-learn's own checks of every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import unpooled as up

ESTIMATORS = [
    up.FederatedLasso(),
    up.FederatedElasticNet(),
    up.FederatedGroupLasso(),
    up.FederatedLogisticRegression(),
    up.FederatedPoissonRegressor(),
    up.FederatedHuberRegressor(),
    up.FederatedTraceRegressor(),
    up.FederatedGraphicalLasso(),
    up.FederatedLassoCV(),
    up.FederatedElasticNetCV(),
    up.FederatedGroupLassoCV(),
    up.FederatedLogisticRegressionCV(),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn(estimator, check):
    check(estimator)
