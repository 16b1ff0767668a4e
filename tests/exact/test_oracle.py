"""What a client answers: derivatives, and losses in NumPy against their kernels."""

import numpy as np
import pytest

import unpooled as up
from tests.exact.federations import LOSSES, federated
from tests.test_your_own import PlainL1, PlainLogCosh, WeightedLogCosh
from unpooled.exact.oracle import answer
from unpooled.exact.site import Site, unpacked
from unpooled.losses.base import residuals


@pytest.mark.parametrize("kind", LOSSES)
def test_losses_in_numpy_are_their_kernels(kind):
    loss, rng = LOSSES[kind], np.random.default_rng(0)
    Z = 3 * rng.standard_normal((50, 3 if kind == "softmax" else 1))
    y = federated(kind, n=50).y
    record, share = loss.record(), rng.random(50)
    values, U = [type(record).value.py_func(record, Z[i], y[i]) for i in range(50)], np.array(Z)
    residuals(record, U, y, np.ones(50))
    assert loss.total(Z, y, share) == pytest.approx(share @ values, rel=1e-13)
    np.testing.assert_allclose(loss.residuals(Z, y), U, atol=1e-13)
    lowest = min(loss.values(z * np.ones_like(Z), y).min() for z in np.linspace(-5, 5, 101))
    assert (loss.floor(y) <= lowest + 1e-12).any() or kind == "poisson"


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in LOSSES if kind != "huber"])
def test_hessians_are_differences_of_gradients(kind, as_csr):
    data = federated(kind, n=60, p=4, sites=2, as_csr=as_csr)
    bound = up.Problem(LOSSES[kind], up.L1(0.1), True).bind(data)
    site, size = Site.of(data.client(0)), bound.layout.size
    w = 0.3 * np.random.default_rng(0).standard_normal(size)
    working = np.unique([0, 2, *range(size - 3, size)])
    up_here = answer(bound, site, {"w": w, "working": working}, 0)
    H = unpacked(up_here["hessian"], len(working))
    step = 1e-6
    for column, j in enumerate(working):
        ends = [answer(bound, site, {"w": w + s * np.eye(size)[j]}, 0)["gradient"] for s in (step, -step)]
        np.testing.assert_allclose(H[:, column], ((ends[0] - ends[1]) / (2 * step))[working], atol=1e-7)
    lost = answer(bound, site, {"w": w - 1e-6 * up_here["gradient"]}, 0)["loss"] - up_here["loss"]
    assert lost == pytest.approx(-1e-6 * np.sum(up_here["gradient"] ** 2), rel=1e-3)


@pytest.mark.parametrize("solver", ["auto", "fista"])
def test_a_loss_and_a_penalty_of_ones_own(solver):
    data = federated("huber", n=100, p=5)
    fit = up.solve(up.Problem(PlainLogCosh(), PlainL1(0.05), True), data, solver=solver, tol=1e-9)
    assert fit.certificate.kind == "KKT residual"
    r = np.tanh(data.X @ fit.w + fit.intercept - data.y)
    pull, kept = data.X.T @ r / 100, fit.w != 0
    assert abs(r.mean()) < 1e-7
    np.testing.assert_allclose(pull[kept], -0.05 * np.sign(fit.w[kept]), atol=1e-7)
    assert (np.abs(pull) <= 0.05 + 1e-7).all()


def test_ones_own_loss_with_weights():
    X, y = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40.0) % 5
    times = np.arange(40) % 3 + 1
    data = up.FederatedData.from_arrays(X, y, np.arange(40) % 2, sample_weight=times)
    fit = up.solve(up.Problem(WeightedLogCosh(), up.L1(0.05)), data, tol=1e-9)
    pull = X.T @ (times * np.tanh(X @ fit.w - y)) / times.sum()
    np.testing.assert_allclose(pull[fit.w != 0], -0.05 * np.sign(fit.w[fit.w != 0]), atol=1e-7)
