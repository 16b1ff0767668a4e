"""scikit-learn's own checks of every estimator."""

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import unpooled as up

# One check compares fits of 15 rows and of fewer than min_rows to seven digits: gradients end at tol.
ALL_SEND = {"min_rows": 0}
SHORT = {"n_alphas": 4, "eps": 0.1, "cv": 3, **ALL_SEND}  # the checks fit each estimator dozens of times
ESTIMATORS = [
    up.FederatedLasso(),
    up.FederatedElasticNet(),
    up.FederatedGroupLasso(),
    up.FederatedLogisticRegression(**ALL_SEND),
    up.FederatedPoissonRegressor(),
    up.FederatedHuberRegressor(),
    up.FederatedTraceRegressor(),
    up.FederatedGraphicalLasso(**ALL_SEND),
    up.FederatedLassoCV(**SHORT),
    up.FederatedElasticNetCV(**SHORT),
    up.FederatedGroupLassoCV(**SHORT),
    up.FederatedLogisticRegressionCV(**SHORT, max_rounds=50),
]


# Three classes of weights 1000, 0.0001 and 0.0001: the smallest α ends with a gap of 1e-7, and says so.
IMBALANCED = "check_class_weight_classifiers"


@parametrize_with_checks(ESTIMATORS)
def test_sklearn(estimator, check):
    with warnings.catch_warnings():
        if isinstance(estimator, up.FederatedLogisticRegressionCV) and check.func.__name__ == IMBALANCED:
            warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)
