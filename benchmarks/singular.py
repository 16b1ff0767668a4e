"""The threshold of singular values, prox of the nuclear norm, against LAPACK's ways to it, on one thread.

Small matrices are Gaussian, and the threshold is their median singular value: half of the values stay, some
lie close to it. The large one has low rank, noise below the threshold, and a prox that needs only what stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from threadpoolctl import ThreadpoolController

import unpooled as up
from benchmarks.agreement import check
from benchmarks.options import Options
from benchmarks.row import Row
from benchmarks.timing import alternate

SECTION = "singular"
SIZES = (16, 32, 64)
LARGE, RANK = (1000, 800), 10
TOLERANCE = 1e-12  # of all results against gesdd's, relative

Matrices = NDArray[np.float64]
Threshold = Callable[[Matrices, float], Matrices]


def ours(A: Matrices, t: float) -> Matrices:
    """The record's prox, as a local loop calls it, matrix by matrix."""
    record, out = up.Nuclear(t).record(A.shape[1:]), np.empty((len(A), A[0].size))
    for v, w in zip(A.reshape(out.shape), out, strict=True):
        record.prox(v, 1.0, w)
    return out.reshape(A.shape)


def gesdd(A: Matrices, t: float) -> Matrices:
    """Divide and conquer, all matrices in one call."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return (U * np.maximum(s - t, 0.0)[:, None, :]) @ Vt


def gesvd(A: Matrices, t: float) -> Matrices:
    """QR steps, matrix by matrix."""
    out = np.empty_like(A)
    for a, w in zip(A, out, strict=True):
        U, s, Vt, _ = lapack.dgesvd(a, full_matrices=False)
        np.matmul(U * np.maximum(s - t, 0.0), Vt, out=w)
    return out


def eigh(A: Matrices, t: float) -> Matrices:
    """Eigenvectors of AᵀA, all matrices in one call; without a bound on the error."""
    squares, V = np.linalg.eigh(np.swapaxes(A, 1, 2) @ A)
    factors = np.maximum(1.0 - t / np.sqrt(np.maximum(squares, t * t)), 0.0)
    return A @ ((V * factors[:, None, :]) @ np.swapaxes(V, 1, 2))


def rows(options: Options) -> Iterator[Row]:
    """Times as fast as each way, by the size of the matrices."""
    rng = np.random.default_rng(0)
    for n in SIZES:
        A = rng.standard_normal((6400 // n, n, n))
        t = float(np.median(np.linalg.svd(A, compute_uv=False)))
        peers = {"gesdd": gesdd, "gesvd": gesvd, "eigh of the Gram matrix": eigh}
        yield from _compare(f"{n} × {n}", A, t, peers, options)
    m, n = LARGE
    signal = rng.standard_normal((m, RANK)) @ rng.standard_normal((RANK, n))
    noise = 0.1 * rng.standard_normal(LARGE)
    t = float(1.2 * np.linalg.norm(noise, 2))
    yield from _compare(f"{m} × {n}, rank {RANK}", (signal + noise)[None], t, {"gesdd": gesdd}, options)


def _compare(
    title: str, A: Matrices, t: float, peers: dict[str, Threshold], options: Options
) -> Iterator[Row]:
    with ThreadpoolController().limit(limits=1, user_api="blas"):  # as where clients run in parallel
        contenders = {"unpooled": ours, **peers}
        truth = gesdd(A, t)
        for name, threshold in contenders.items():
            check(f"{title}, {name}", threshold(A, t), truth, TOLERANCE)
        turns: dict[str, Callable[[], object]] = {
            name: lambda threshold=threshold: threshold(A, t) for name, threshold in contenders.items()
        }
        times = alternate(turns, options.turns)
    for name in peers:
        mine, theirs = (1e3 * times.median(who) / len(A) for who in ("unpooled", name))
        low, high = times.spread(name, "unpooled")
        detail = f"{theirs:.3g} ms a matrix, ours {mine:.3g}; {low:.2f}–{high:.2f}"
        yield Row(SECTION, f"{title}: against {name}", times.ratio(name, "unpooled"), "×", detail=detail)
