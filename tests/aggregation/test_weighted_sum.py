"""The weighted sum of uploads: the same bits in whatever parts they come, on however many threads."""

import numba
import numpy as np
import pytest

from unpooled.engines.local.cohort import Threads
from unpooled.kernels import parallel_sum, weighted_sum
from unpooled.kernels.parallel_sum import compiled_sum
from unpooled.kernels.weighted_sum import PIECE, add_here, add_weighted


def uploads(n_clients, vectors, size, dtype):
    rng = np.random.default_rng(n_clients)
    return rng.random(n_clients), rng.standard_normal((n_clients, vectors, size)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("n_clients", "vectors", "size"), [(1, 1, 1), (3, 2, 7), (9, 2, PIECE + 3), (70, 1, 5001)]
)
def test_neither_parts_nor_threads_change_a_bit(n_clients, vectors, size, dtype):
    weights, up = uploads(n_clients, vectors, size, dtype)
    whole = np.ones((vectors, size))
    add_weighted(whole, weights, up)
    np.testing.assert_allclose(whole, 1.0 + np.tensordot(weights, up, axes=1), rtol=1e-12, atol=1e-12)
    for step in (1, 3, 4, 6):
        parts = np.ones((vectors, size))
        for first in range(0, n_clients, step):
            add_weighted(parts, weights[first : first + step], up[first : first + step])
        assert np.array_equal(parts, whole)
    for count in (1, 2):
        one = np.ones((vectors, size))
        with Threads(count):
            add_weighted(one, weights, up)
        assert np.array_equal(one, whole)


def test_a_block_inside_another_leaves_the_threads_as_they_are():
    before, one = numba.get_num_threads(), Threads(1)
    with one:
        with one:
            assert numba.get_num_threads() == 1
        assert numba.get_num_threads() == 1
    assert numba.get_num_threads() == before


def test_large_sums_wake_the_other_threads(monkeypatch):
    weights, up = uploads(6, 1, 3 * PIECE + 1, "float64")
    here, woken = np.zeros((1, up.shape[2])), np.zeros((1, up.shape[2]))
    calls = []
    monkeypatch.setattr(parallel_sum, "compiled_sum", lambda: calls.append(1) or compiled_sum())
    add_weighted(here, weights, up)
    assert not calls
    monkeypatch.setattr(weighted_sum, "LARGE", 0)
    add_weighted(woken, weights, up)
    assert calls
    assert np.array_equal(here, woken)


def test_as_it_is_written():
    weights, up = uploads(7, 2, 5, "float64")
    compiled, plain = np.zeros((2, 5)), np.zeros((2, 5))
    add_here(compiled, weights, up)
    add_here.py_func(plain, weights, up)
    np.testing.assert_allclose(compiled, plain, rtol=1e-13)
