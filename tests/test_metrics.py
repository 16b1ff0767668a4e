import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, mean_squared_error

from unpooled.data.federated import FederatedData
from unpooled.runs import metrics

rng = np.random.default_rng(0)
TRUTH = np.where(rng.random((6, 5)) < 0.5, 0, rng.standard_normal((6, 5)))
ESTIMATE = TRUTH + np.where(rng.random((6, 5)) < 0.4, 0, 0.1 * rng.standard_normal((6, 5)))


def ragged(row_shape=(4,), n_classes=None, **kwargs):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, *row_shape))
    y = rng.standard_normal(30) if n_classes is None else rng.integers(n_classes, size=30)
    return FederatedData.from_arrays(
        X, y, np.sort(rng.choice(["a", "b", "c"], 30, p=[0.1, 0.3, 0.6])), **kwargs
    )


def test_errors_are_the_norms_of_the_difference():
    values = np.linalg.svd(ESTIMATE - TRUTH, compute_uv=False)
    assert metrics.operator_error(TRUTH)(ESTIMATE) == pytest.approx(values.max())
    assert metrics.frobenius_error(TRUTH)(ESTIMATE) == pytest.approx(np.sqrt((values**2).sum()))
    assert metrics.l2_error(TRUTH)(ESTIMATE) == pytest.approx(np.sqrt((values**2).sum()))
    assert metrics.l1_error(TRUTH)(ESTIMATE) == pytest.approx(sum(abs(x) for x in (ESTIMATE - TRUTH).flat))


@pytest.mark.parametrize("threshold", [0.0, 0.01, 0.1, 0.5])
def test_support_f1_is_that_of_scikit_learn(threshold):
    expected = f1_score(TRUTH.ravel() != 0, np.abs(ESTIMATE.ravel()) > threshold)
    assert metrics.support_f1(TRUTH, threshold)(ESTIMATE) == pytest.approx(expected)


def test_support_f1_of_empty_supports():
    zero = np.zeros(3)
    assert metrics.support_f1(zero)(zero) == 1.0
    assert metrics.support_f1(zero)([0, 1, 0]) == 0.0
    assert metrics.support_f1([0, 1, 0])(zero) == 0.0


def low_rank(rank, dtype=float, noise=0.0):
    """A singular-value threshold that keeps ``rank`` values, plus a perturbation of full rank."""
    rng = np.random.default_rng(rank)
    U, s, V = np.linalg.svd(rng.standard_normal((32, 32)))
    s[rank:] = 0
    return ((U * s) @ V).astype(dtype) + (noise * rng.standard_normal((32, 32))).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [1, 16, 32])
def test_rank_is_that_of_numpy_and_blind_to_rounding(rank, dtype):
    W = low_rank(rank, dtype)
    assert metrics.rank()(W) == np.linalg.matrix_rank(W) == rank
    assert metrics.rank(tolerance=0)(W) == rank


def test_rank_sees_what_was_not_thresholded():
    W = low_rank(16, noise=1e-3)
    assert metrics.rank()(W) == 32
    assert metrics.rank(threshold=0.1)(W) == 16
    assert metrics.rank(tolerance=0.01)(W) == 16
    assert metrics.rank()(np.zeros((3, 4))) == 0


def test_nonzeros():
    assert metrics.nonzeros()(TRUTH) == (TRUTH != 0).sum()


@pytest.mark.parametrize("row_shape", [(4,), (2, 3)])
@pytest.mark.parametrize("intercept", [None, 0.7])
def test_mse_is_that_of_scikit_learn(row_shape, intercept):
    data = ragged(row_shape)
    w = np.random.default_rng(2).standard_normal(row_shape)
    predictions = np.tensordot(data.X, w, axes=len(row_shape)) + (intercept or 0)
    assert metrics.mse(data)(w, intercept) == pytest.approx(mean_squared_error(data.y, predictions))


def test_mse_weighs_rows_as_the_objective_does():
    s = np.random.default_rng(3).random(30)
    data, w = ragged(sample_weight=s), np.ones(4)
    assert metrics.mse(data)(w) == pytest.approx(mean_squared_error(data.y, data.X @ w, sample_weight=s))
    uniform = ragged(weights="uniform")
    each = [mean_squared_error(client.y, client.X @ w) for client in uniform]
    assert metrics.mse(uniform)(w) == pytest.approx(np.mean(each))


def test_csr_and_float32_data_give_the_same_numbers():
    data, w = ragged(), np.array([1.0, 0, -2, 0])
    csr = FederatedData.from_arrays(sparse.csr_array(data.X), data.y, np.repeat(data.ids, data.sizes))
    assert metrics.mse(csr)(w, 0.5) == pytest.approx(metrics.mse(data)(w, 0.5))
    assert metrics.mse(data.astype("f4"))(w, 0.5) == pytest.approx(metrics.mse(data)(w, 0.5), rel=1e-5)


@pytest.mark.parametrize(("n_classes", "signed"), [(2, False), (2, True), (4, False)])
def test_accuracy_is_that_of_scikit_learn(n_classes, signed):
    data = ragged(n_classes=n_classes)
    if signed:
        data = FederatedData.from_arrays(data.X, 2 * data.y - 1, np.repeat(data.ids, data.sizes))
    model = LogisticRegression().fit(data.X, data.y)
    w, b = (model.coef_[0], model.intercept_[0]) if n_classes == 2 else (model.coef_.T, model.intercept_)
    expected = accuracy_score(data.y, model.predict(data.X))
    assert 0.3 < expected < 1
    assert metrics.accuracy(data)(w, b) == pytest.approx(expected)


def test_a_two_column_model_of_two_classes_is_multinomial():
    data = ragged(n_classes=2)
    w = np.random.default_rng(5).standard_normal((4, 2))
    assert metrics.accuracy(data)(w) == pytest.approx(metrics.accuracy(data)(w[:, 1] - w[:, 0]))


def test_loss_asks_the_problem():
    class Problem:
        def smooth(self, w, data, intercept):
            return data.n_rows + w.sum() + intercept

    assert metrics.loss(ragged(), Problem())(np.ones(4), 0.5) == 34.5


@pytest.mark.parametrize(
    "metric",
    [
        metrics.l2_error(TRUTH),
        metrics.l1_error(TRUTH),
        metrics.operator_error(TRUTH),
        metrics.support_f1(TRUTH),
    ],
)
def test_other_shapes_than_the_truths_are_refused(metric):
    with pytest.raises(ValueError, match=r"w has shape \(6,\), but the truth has \(6, 5\)"):
        metric(ESTIMATE[:, 0])


def test_other_shapes_than_the_datas_are_refused():
    data = ragged(n_classes=3)
    with pytest.raises(ValueError, match=r"mse: w has shape \(3,\), but a row of the data has \(4,\)"):
        metrics.mse(data)(np.ones(3))
    with pytest.raises(ValueError, match=r"accuracy: w has shape \(3,\), but a row of the data has \(4,\)"):
        metrics.accuracy(data)(np.ones(3))
    with pytest.raises(ValueError, match=r"needs y in \{0, 1\} or \{-1, 1\}, got \[0. 1. 2.\]"):
        metrics.accuracy(data)(np.ones(4))
    with pytest.raises(ValueError, match=r"needs y in 0 … 1, got \[0. 1. 2.\]"):
        metrics.accuracy(data)(np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"accuracy: w has shape \(4, 1\)"):
        metrics.accuracy(data)(np.ones((4, 1)))
    with pytest.raises(ValueError, match="rank needs a matrix"):
        metrics.rank()(np.ones(4))
    with pytest.raises(ValueError, match="operator_error needs a matrix"):
        metrics.operator_error(np.ones(4))
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        metrics.support_f1(TRUTH, -1)


def test_names():
    made = [
        metrics.l2_error(TRUTH),
        metrics.l1_error(TRUTH),
        metrics.frobenius_error(TRUTH),
        metrics.operator_error(TRUTH),
        metrics.support_f1(TRUTH),
        metrics.rank(),
        metrics.nonzeros(),
        metrics.mse(ragged()),
        metrics.accuracy(ragged()),
        metrics.loss(ragged(), None),
    ]
    names = "l2_error l1_error frobenius_error operator_error support_f1 rank nonzeros mse accuracy loss"
    assert [metric.__name__ for metric in made] == names.split()
