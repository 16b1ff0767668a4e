"""The products in explicit vectors against the plain loops and NumPy, at every size that leaves a rest."""

import os
import subprocess
import sys

import numpy as np
import pytest

import unpooled as up
from tests.test_sparse_products import OUTPUTS, check_sparse_products
from unpooled.kernels import plain_products as blocks
from unpooled.kernels.compile import compiled, vectorised
from unpooled.kernels.rows import DenseRows
from unpooled.kernels.simd import width
from unpooled.losses.base import linear_gradient

vector_margins = vectorised(blocks.margins)
vector_adjoint = vectorised(blocks.adjoint)
vector_exponentials = vectorised(blocks.exponentials)


def run_margins(X, batch, w, Z):
    vector_margins(X, batch, w, Z)


def run_adjoint(X, batch, Z, G):
    vector_adjoint(X, batch, Z, G)


def run_exponentials(Z):
    vector_exponentials(Z)


SIZES = [
    *((p, 3, 7) for p in range(1, 71)),  # features
    *((37, C, 6) for C in (*range(1, 18), 62)),  # outputs
    *((21, 4, b) for b in range(1, 28)),  # rows
    (811, 2, 5),  # more than one panel
    (811, 10, 25),
]


def check_products(dtype):
    """Both products by vectors, by plain loops and by NumPy, for all sizes; nothing else is written."""
    margins, adjoint = compiled(run_margins), compiled(run_adjoint)
    rng = np.random.default_rng(3)
    for p, C, b in SIZES:
        X = rng.standard_normal((b + 4, p)).astype(dtype)
        batch = rng.permutation(b + 4)[:b]
        w, R = (rng.standard_normal(shape).astype(dtype) for shape in (C * p, (b, C)))
        exact_Z = X[batch].astype(np.float64) @ w.reshape(C, p).T
        exact_G = R.T.astype(np.float64) @ X[batch]
        # sums of n products of numbers around one: errors of a few √n ulps
        ulp = 8 * np.finfo(dtype).eps
        for function, plain, given, exact in (
            (margins, blocks.margins, w, exact_Z),
            (adjoint, blocks.adjoint, R, exact_G.ravel()),
        ):
            out = np.full(exact.size + 3, 7.0, dtype)
            function(X, batch, given, out[:-3].reshape(exact.shape))
            other = np.empty(exact.shape, dtype)
            plain(X, batch, given, other)
            bound = ulp * np.sqrt(p + b) * 3
            np.testing.assert_allclose(out[:-3].reshape(exact.shape), exact, rtol=0, atol=bound)
            np.testing.assert_allclose(other, exact, rtol=0, atol=bound)
            assert (out[-3:] == 7.0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products(dtype):
    check_products(dtype)


def check_exponentials(dtype):
    """Within an ulp and a half of the truth, NaN stays, and what underflows is next to nothing."""
    z = -np.abs(np.random.default_rng(0).standard_normal((211, 7)) * 20).astype(dtype)
    z[:2] = 0.0
    exact = np.exp(z.astype(np.longdouble))
    out = z.copy()
    exponentials = compiled(run_exponentials)
    exponentials(out)
    assert np.abs((out - exact) / np.spacing(exact.astype(dtype))).max() < 1.5
    extreme = np.array([[-1e4, np.nan, -np.inf]], dtype)
    exponentials(extreme)
    assert np.isnan(extreme[0, 1])
    assert (np.abs(extreme[0, [0, 2]]) < 2e-38).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials(dtype):
    check_exponentials(dtype)


@pytest.mark.parametrize("order", ["F", "strided"])
def test_rows_without_vectors_take_the_plain_loops(order):
    """Arrays that do not lie in one piece, row by row, still have the right gradient."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((9, 12))
    laid = np.asfortranarray(X) if order == "F" else np.repeat(X, 2, axis=1)[:, ::2]
    y, w = rng.integers(0, 3, 9).astype(float), rng.standard_normal(36)
    results = []
    for rows in (X, laid):
        G, Z = np.empty(36), np.empty((6, 3))
        record = up.Softmax(n_classes=3).record()
        linear_gradient(record, DenseRows(rows, y, np.empty(0)), np.arange(6), w, Z, G)
        results.append(G)
    np.testing.assert_allclose(*results, rtol=1e-12, atol=1e-14)


def simulated(dtype, threads):
    """A run with weights, intercepts and sizes that leave rests everywhere."""
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((90, 37)).astype(np.float32), rng.integers(0, 7, 90).astype(np.float32)
    clients, weight = np.repeat(np.arange(9), 10), rng.uniform(0.5, 2.0, 90)
    data = up.FederatedData.from_arrays(X, y, clients, sample_weight=weight)
    problem = up.Problem(up.Softmax(n_classes=7), up.L1(0.01), intercept=True)
    algorithm = up.FastFedDA(mu=0.1, gamma=50.0, a=1.0, local_steps=3)
    engine = up.engines.Local(threads=threads)
    options = {"rounds": 4, "cohort": 6, "batch_size": 7, "dtype": dtype, "engine": engine}
    return up.simulate(algorithm, problem, data, **options)


@pytest.mark.parametrize("dtype", [None, "float32", "float64"])
def test_threads_do_not_change_a_bit(dtype):
    one, two = (simulated(dtype, threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.w, two.w)
    np.testing.assert_array_equal(one.intercept, two.intercept)
    assert np.abs(one.w).max() > 0


def check_all():
    """Everything in explicit vectors, for both precisions; how many bytes a vector has."""
    for dtype in (np.float32, np.float64):
        check_products(dtype)
        check_exponentials(dtype)
        for n_outputs in OUTPUTS:
            check_sparse_products("vectors", n_outputs, dtype)
    return width()


def elsewhere(asked, cache, code):
    """What ``code`` prints in a process with UNPOOLED_SIMD as asked."""
    environment = {**os.environ, "UNPOOLED_SIMD": asked, "UNPOOLED_CACHE_DIR": str(cache)}
    code = f"from tests import test_simd as t; {code}"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [float(number) for number in done.stdout.split()]


@pytest.mark.slow
@pytest.mark.parametrize("asked", [bytes for bytes in (16, 32, 64) if bytes != width()])
def test_vectors_of_other_hosts(asked, tmp_path):
    """LLVM makes them of what there is, so that the blocks of NEON and AVX-512 can be checked anywhere."""
    assert elsewhere(str(asked), tmp_path, "print(t.check_all())") == [asked]


@pytest.mark.slow
def test_switched_off_the_plain_loops_come_to_the_same_model(tmp_path):
    used, *w = elsewhere("off", tmp_path, "print(t.width(), *t.simulated(None, 2).w.ravel())")
    assert used == 0
    np.testing.assert_allclose(w, simulated(None, 2).w.ravel(), rtol=1e-4, atol=1e-6)


def test_a_wrong_switch_is_refused(monkeypatch):
    monkeypatch.setenv("UNPOOLED_SIMD", "on")
    with pytest.raises(ValueError, match=r"UNPOOLED_SIMD must be one of off, 16, 32, 64, got 'on'"):
        width.__wrapped__()
