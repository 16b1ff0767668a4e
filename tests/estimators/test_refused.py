"""Bad input gets an error that says what was wrong."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import unpooled as up
from tests.exact.federations import rows

X, Y, CLIENTS = rows("squared", n=40, p=4, sites=2)
LABELS = np.median(Y) < Y
PAIRS = np.argwhere(np.ones((5, 8)))


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda m: m.fit(X, Y, clients=CLIENTS[:-1]), "X has 40 rows but clients has 39 ids"),
        (lambda m: m.fit(X, Y, clients=np.where(CLIENTS == 1, np.nan, 0.0)), "client id is missing"),
        (lambda m: m.fit(X, Y, clients=np.zeros((40, 2), int)), "one id per row"),
        (lambda m: m.fit(np.where(np.eye(40, 4) > 0, np.nan, X), Y), "NaN"),
        (lambda m: m.fit(X, np.where(Y[3] == Y, np.inf, Y)), "infinity"),
        (lambda m: m.fit(X, Y[:-1]), "inconsistent numbers of samples"),
        (lambda m: m.fit(X), "requires y to be passed"),
        (lambda m: m.fit(X, Y, sample_weight=-np.ones(40)), "[Nn]egative"),
        (lambda m: m.fit(X, Y, sample_weight=np.zeros(40)), "zero"),
        (lambda m: m.fit(X, Y, sample_weight=np.ones(3)), "sample_weight"),
        (lambda m: m.set_params(alpha=-1.0).fit(X, Y), r"alpha=-1.0: expected a number of at least 0"),
        (lambda m: m.set_params(alpha=np.nan).fit(X, Y), "alpha=nan"),
        (lambda m: m.set_params(solver="newton").fit(X, Y), "there is no solver 'newton'"),
        (lambda m: m.set_params(tol=0.0).fit(X, Y), "tol must be a positive number"),
        (lambda m: m.fit(X, Y).predict(X[:, :3]), "3 features, but FederatedLasso is expecting 4"),
        (lambda m: m.fit(up.FederatedData.from_arrays(X, Y, CLIENTS), Y), "which includes y"),
        (
            lambda m: m.fit(X, Y).predict(up.FederatedData.from_arrays(X[:, :3], Y, CLIENTS)),
            "3 features, but FederatedLasso is expecting 4",
        ),
    ],
)
def test_all(call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call(up.FederatedLasso(0.1))


def test_a_client_id_of_another_type():
    with pytest.raises(TypeError, match="one id per row, got 'north'"):
        up.FederatedLasso().fit(X, Y, clients="north")
    with pytest.raises(TypeError, match="integers or strings"):
        up.FederatedLasso().fit(X, Y, clients=np.linspace(0, 1, 40))


def test_unpenalised_columns_are_a_list():
    for given in (2, "x2"):
        with pytest.raises(TypeError, match="unpenalised must be a list of columns"):
            up.FederatedLasso(unpenalised=given).fit(X, Y)


def test_not_fitted():
    for model in (up.FederatedLasso(), up.FederatedLogisticRegression(), up.FederatedMatrixCompletion()):
        with pytest.raises(NotFittedError):
            model.predict(X)
        with pytest.raises(NotFittedError):
            model.summary()


@pytest.mark.parametrize(
    ("options", "y", "complaint"),
    [
        ({}, np.zeros(40), "two classes, but all labels of all clients are of one class"),
        ({}, Y, "Unknown label type"),
        ({"C": 0.0}, LABELS, "C=0.0: expected a number above 0"),
        ({"class_weight": "even"}, LABELS, "class_weight must be None, 'balanced' or a dictionary"),
        ({"class_weight": {2: 1.0}}, LABELS, "class_weight names 2, which is not a class"),
        ({"class_weight": {True: 0.0}}, LABELS, "must be a positive number"),
        ({"l1_ratio": 1.5}, LABELS, "l1_ratio=1.5"),
    ],
)
def test_classifiers(options, y, complaint):
    with pytest.raises(ValueError, match=complaint):
        up.FederatedLogisticRegression(**options).fit(X, y)


def test_others():
    with pytest.raises(ValueError, match="targets ≥ 0"):
        up.FederatedPoissonRegressor().fit(X, Y - 100.0)
    with pytest.raises(ValueError, match="delta must be a positive number"):
        up.FederatedHuberRegressor(delta=0).fit(X, Y)
    with pytest.raises(ValueError, match="group"):
        up.FederatedGroupLasso(groups=[0, 1, 1]).fit(X, Y)
    with pytest.raises(ValueError, match=r"shape=\(3, 2\) needs 6 columns, but X has 4"):
        up.FederatedTraceRegressor(shape=(3, 2)).fit(X, Y)
    with pytest.raises(ValueError, match=r"the rows of X have shape \(2, 2\)"):
        up.FederatedTraceRegressor(shape=(4, 1)).fit(X.reshape(40, 2, 2), Y)
    with pytest.raises(ValueError, match="two whole numbers"):
        up.FederatedTraceRegressor(shape=(4,)).fit(X, Y)


def test_pairs():
    model = up.FederatedMatrixCompletion()
    with pytest.raises(ValueError, match=r"pairs \(i, j\), one a row, got shape \(40, 4\)"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match=r"row 0 is \[0.5, 0.5\]"):
        model.fit(PAIRS + 0.5, Y)
    with pytest.raises(ValueError, match="whole numbers from 0"):
        model.fit(PAIRS - 1, Y)
    with pytest.raises(ValueError, match=r"shape=\(5, 7\), but X holds pairs up to \(4, 7\)"):
        model.set_params(shape=(5, 7)).fit(PAIRS, Y)
    model.set_params(shape=None).fit(PAIRS, Y)
    with pytest.raises(ValueError, match="outside the fitted 5 × 8 matrix"):
        model.predict([[5, 0]])


def test_a_fit_that_stops_early_says_so():
    with pytest.warns(
        ConvergenceWarning, match=r"stopped after 2 rounds .* above tol=1e-08: raise max_rounds"
    ):
        model = up.FederatedLasso(0.1, max_rounds=2, second_order=False).fit(X, Y, clients=CLIENTS)
    assert not model.fit_result_.converged
    assert "NOT reached" in model.summary()


FRAME = pd.DataFrame({"age": X[:, 0], "smoker": ["Yes", "No"] * 20, "dose": ["1.5"] * 40, "sex": "f"})
WORDS = "X must be numeric, but column 'smoker' holds 'Yes', column 'sex' holds 'f': preprocessing\\.encode"


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_words_in_a_frame_are_named_with_their_columns(dtype):
    given = FRAME.astype({"smoker": dtype, "sex": dtype})
    for model, y in ((up.FederatedLasso(), Y), (up.FederatedLogisticRegressionCV(), LABELS)):
        with pytest.raises(ValueError, match=WORDS):
            model.fit(given, y, clients=CLIENTS)
    with pytest.raises(ValueError, match=WORDS):
        up.FederatedGraphicalLasso().fit(given, clients=CLIENTS)
    model = up.FederatedLasso(0.1).fit(FRAME.assign(smoker=1.0, sex=X[:, 1]), Y)  # "1.5" is a number
    with pytest.raises(ValueError, match=WORDS):
        model.predict(given)
    frame = given.assign(y=Y, site=CLIENTS)
    with pytest.raises(TypeError, match=r"leave out 'smoker' \(.*\): preprocessing\.encode makes"):
        up.FederatedData.from_frame(frame, "y", "site")
    with pytest.raises(TypeError, match=r"column 'smoker' holds 'Yes': preprocessing\.encode makes"):
        up.FederatedData.from_arrays(given, Y, CLIENTS)


def test_words_without_a_frame():
    with pytest.raises(ValueError, match="X must be numeric, but column 1 holds 'Yes', column 3 holds 'f'"):
        up.FederatedLasso().fit(FRAME.to_numpy(), Y)
    many = np.full((40, 7), "low", dtype=object)
    with pytest.raises(ValueError, match=r"column 4 holds 'low' \(and 2 more columns\): preprocessing"):
        up.FederatedLasso().fit(many, Y)
    labels = np.array(["no", "yes"] * 20, dtype=object)
    with pytest.raises(
        ValueError, match="y must be numeric, but row 0 holds 'no': labels are for classifiers"
    ):
        up.FederatedLasso().fit(X, labels)
