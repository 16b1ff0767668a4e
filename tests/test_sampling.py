"""Philox against its published answers; draws without replacement; keys that keep streams apart."""

import itertools

import numpy as np
import pytest

from unpooled.kernels import draws as sampling
from unpooled.kernels.draws import cohort, draw, minibatch, philox

# Known answers of Philox4x32-10 from the Random123 distribution: counter, key, output.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
@pytest.mark.parametrize("function", [philox, philox.py_func], ids=["compiled", "uncompiled"])
def test_known_answers(function, counter, key, expected):
    words = function(*(np.uint64(c) for c in counter), np.uint64(key[0] | key[1] << 32))
    assert tuple(int(word) for word in words) == expected


def test_draw_compiled_equals_uncompiled_and_leaves_no_trace():
    identity = np.arange(11)
    drawn = []
    for function in (draw, draw.py_func):
        chosen = np.empty(7, np.int64)
        function(np.uint64(9), 3, 4, 5, identity, chosen)
        assert np.array_equal(identity, np.arange(11))
        drawn.append(chosen)
    assert np.array_equal(*drawn)


def test_every_subset_is_equally_likely():
    """χ² over the C(6, 3) = 20 subsets: 99.99 % of uniform samples stay below 52.4 (19 degrees)."""
    counts = dict.fromkeys(itertools.combinations(range(6), 3), 0)
    trials = 20_000
    for r in range(trials):
        counts[tuple(sorted(minibatch(7, r, 0, 0, 6, 3).tolist()))] += 1
    expected = trials / 20
    assert sum((n - expected) ** 2 / expected for n in counts.values()) < 52.4


def test_first_position_is_uniform_too():
    """χ² over 10 values: 99.99 % below 33.7 (9 degrees)."""
    counts = np.bincount([minibatch(1, 0, 0, s, 10, 1)[0] for s in range(20_000)], minlength=10)
    assert ((counts - 2000) ** 2 / 2000).sum() < 33.7


def test_without_replacement_and_in_range():
    for n, b in [(1, 1), (2, 1), (5, 5), (100, 25), (1000, 999)]:
        batch = minibatch(3, 1, 2, 0, n, b)
        assert len(set(batch.tolist())) == b
        assert batch.min() >= 0
        assert batch.max() < n


def test_every_key_matters():
    base = {"seed": 1, "round": 2, "client": 3, "step": 4}
    reference = minibatch(**base, n_rows=1000, size=20)
    assert np.array_equal(reference, minibatch(**base, n_rows=1000, size=20))
    for name in base:
        assert not np.array_equal(reference, minibatch(**{**base, name: 9}, n_rows=1000, size=20))
    assert not np.array_equal(reference, minibatch(**{**base, "seed": 1 + 2**32}, n_rows=1000, size=20))


def test_cohorts():
    assert np.array_equal(cohort(0, 0, 5, None), np.arange(5))
    assert np.array_equal(cohort(0, 0, 5, 5), np.arange(5))
    chosen = [cohort(0, r, 64, 10) for r in range(200)]
    for c in chosen:
        assert np.array_equal(c, np.unique(c))
        assert len(c) == 10
    counts = np.bincount(np.concatenate(chosen), minlength=64)
    assert counts.sum() == 2000
    assert counts.min() > 10  # 31 expected, sd 5
    assert counts.max() < 55
    assert not np.array_equal(cohort(1, 0, 64, 10), chosen[0])


@pytest.mark.parametrize(("n_clients", "size"), [(64, 10), (3 * sampling.DRAWN, sampling.DRAWN // 3)])
def test_a_cohort_is_its_rounds_own_whatever_is_drawn_with_it(n_clients, size):
    for r in (0, 1, 2, sampling.BLOCK - 1, sampling.BLOCK, 10 * sampling.BLOCK + 3):
        alone = np.empty(size, np.int64)
        draw(np.uint64(4), sampling.COHORT, 0, r, np.arange(n_clients), alone)
        chosen = cohort(4, r, n_clients, size)
        assert np.array_equal(chosen, np.sort(alone))
        chosen[:] = 0  # it is the caller's to change
        assert np.array_equal(cohort(4, r, n_clients, size), np.sort(alone))


def test_full_batches_when_the_client_is_small():
    assert np.array_equal(minibatch(0, 0, 0, 0, 4, None), np.arange(4))
    assert np.array_equal(minibatch(0, 0, 0, 0, 4, 10), np.arange(4))


def test_cohort_stream_is_not_a_minibatch_stream():
    assert np.uint64(2**32 - 1) == sampling.COHORT
    assert not np.array_equal(cohort(5, 0, 100, 10), np.sort(minibatch(5, 0, 0, 0, 100, 10)))
