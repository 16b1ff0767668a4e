"""scikit-learn's own checks of every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import unpooled as up

SHORT = {"n_alphas": 4, "eps": 0.1, "cv": 3, "min_rows": 0}  # the checks fit each estimator dozens of times
ESTIMATORS = [
    up.FederatedLasso(),
    up.FederatedElasticNet(),
    up.FederatedGroupLasso(),
    up.FederatedLogisticRegression(),
    up.FederatedPoissonRegressor(),
    up.FederatedHuberRegressor(),
    up.FederatedTraceRegressor(),
    up.FederatedGraphicalLasso(min_rows=0),
    up.FederatedLassoCV(**SHORT),
    up.FederatedElasticNetCV(**SHORT),
    up.FederatedGroupLassoCV(**SHORT),
    up.FederatedLogisticRegressionCV(**SHORT),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn(estimator, check):
    check(estimator)
