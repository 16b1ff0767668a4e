"""Random cohorts and minibatches: the only source of randomness in a run.

Every draw is a pure function of (seed, round, client, step) through the counter-based generator
Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011): the seed is the key, the other three form the counter.
The generator has no state, so a draw does not depend on execution order, thread count, the other clients of
the cohort, or the engine.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unpooled._validation import ClientId
from unpooled.kernels.arrays import Array
from unpooled.kernels.compile import kernel

Word: TypeAlias = Any  # an unsigned number below 2³² held in 64 bits

MASK = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
COHORT = np.uint64(0xFFFFFFFF)  # step number reserved for drawing a round's cohort
BLOCK, DRAWN = 64, 2**16  # limits on the rounds, and on the total clients, drawn in one call


@kernel
def philox(c0: Word, c1: Word, c2: Word, c3: Word, seed: Word) -> tuple[Word, Word, Word, Word]:
    """Four 32-bit random words (held in uint64) of the counter (c0, c1, c2, c3) under the 64-bit seed."""
    k0, k1 = seed & MASK, seed >> HALF
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> HALF) ^ c1 ^ k0, p1 & MASK, (p0 >> HALF) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & MASK, (k1 + np.uint64(0xBB67AE85)) & MASK
    return c0, c1, c2, c3


@kernel
def draw(seed: Word, step: Word, client: Word, round: Word, identity: Array, chosen: Array) -> None:
    """Fill ``chosen`` with distinct entries of ``identity`` = (0, 1, …, n−1), all subsets equally likely.

    A Fisher–Yates shuffle that stops after ``chosen.size`` swaps and then undoes them. ``identity`` is
    unchanged, and the next draw costs O(chosen.size) instead of O(n).
    """
    n, b = identity.size, chosen.size
    swapped = np.empty(b, np.int64)
    for block in range((b + 3) // 4):
        words = philox(np.uint64(block), np.uint64(step), np.uint64(client), np.uint64(round), seed)
        for lane in range(4):
            i = 4 * block + lane
            if i < b:
                j = i + np.int64((words[lane] * np.uint64(n - i)) >> HALF)
                swapped[i] = j
                chosen[i] = identity[j]
                identity[j] = identity[i]
                identity[i] = chosen[i]
    for i in range(b - 1, -1, -1):
        j = swapped[i]
        identity[i], identity[j] = identity[j], identity[i]


def own_draws(name: ClientId, seed: int, *more: int) -> np.random.Generator:
    """A client's generator for splits of its rows, keyed by the seed and the client's id only."""
    key = int.from_bytes(hashlib.blake2b(repr(name).encode(), digest_size=8).digest())
    return np.random.default_rng([seed, key, *more])


@kernel
def draw_cohorts(seed: Word, first: int, identity: Array, chosen: Array) -> None:
    """Fill row i of ``chosen`` with the cohort of round ``first`` + i."""
    for i in range(chosen.shape[0]):
        draw(seed, COHORT, 0, first + i, identity, chosen[i])


def _drawn(seed: int, first: int, rounds: int, n_clients: int, size: int) -> npt.NDArray[np.int64]:
    """The cohorts of ``rounds`` rounds from ``first``; one call for many rounds saves call overhead."""
    chosen = np.empty((rounds, size), np.int64)
    draw_cohorts(np.uint64(seed), first, np.arange(n_clients), chosen)
    chosen.sort(axis=1)
    return chosen


_remembered = functools.lru_cache(maxsize=8)(_drawn)


def cohort(seed: int, round: int, n_clients: int, size: int | None) -> npt.NDArray[np.int64]:
    """The clients of a round, sorted: ``size`` of them without replacement, or all when ``size`` is None."""
    if size is None or size >= n_clients:
        return np.arange(n_clients)
    together = max(1, min(BLOCK, DRAWN // size))
    block, index = divmod(round, together)
    return np.array(_remembered(seed, block * together, together, n_clients, size)[index])


def forgotten_cohort(seed: int, round: int, n_clients: int, size: int | None) -> npt.NDArray[np.int64]:
    """As ``cohort``, for a secret seed used in one round only: the result is not cached."""
    if size is None or size >= n_clients:
        return np.arange(n_clients)
    return np.array(_drawn(seed, round, 1, n_clients, size)[0])


def minibatch(
    seed: int, round: int, client: int, step: int, n_rows: int, size: int | None
) -> npt.NDArray[np.int64]:
    """The rows (0 … n_rows−1) of one local step, the same in every engine; all rows when ``size`` is None."""
    if size is None or size >= n_rows:
        return np.arange(n_rows)
    chosen = np.empty(size, np.int64)
    draw(np.uint64(seed), step, client, round, np.arange(n_rows), chosen)
    return chosen
