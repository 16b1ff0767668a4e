"""The server's own work: minimise  ½vᵀHv − cᵀv + h(v)  for a matrix at hand, to rounding.

``minimise`` is for penalties of blocks: passes of coordinate descent over the coordinates that matter (those
that are not zero, and those whose optimality condition fails), each followed by Newton steps on the
coordinates that are not zero. Coordinate descent finds which these are and converges from anywhere; once
they are right, a Newton step ends it. ``accelerated`` is for every other penalty.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unpooled.exact.shrinkage import Blocks, Shrinkage
from unpooled.kernels.arrays import Array, Float
from unpooled.kernels.linalg.lanczos import fixed_direction, largest_eigenvalue

PASSES = 300
STEPS = 20_000
TOLERANCE = 1e-13  # of the optimality condition, relative to the size of c and of the penalty's weights
HOPELESS = 60  # passes without progress anywhere
STALLED = 4  # passes without progress near the end: rounding is reached


def minimise(H: Float, c: Float, h: Blocks, start: Float, thorough: bool = False) -> Float:
    """argmin ½vᵀHv − cᵀv + h(v), H positive semi-definite.

    Where that does not come to an end (λ tiny, H singular) and ``thorough`` is asked for, once more along a
    path of falling weights, on which few coordinates change at a time.
    """
    v, converged = _descent(H, c, h, start, PASSES)
    if converged or not thorough or not h.weight.any():
        return v
    best = _value(H @ v - c, v, c, h)
    w = np.zeros_like(v)
    largest = float(np.max(h.norms(c)[h.weight > 0.0] / h.weight[h.weight > 0.0]))
    for factor in np.geomspace(max(largest, 1.0), 1.0, max(2, int(4 * np.log(max(largest, 1.0))))):
        w, _ = _descent(H, c, replace(h, weight=factor * h.weight), w, PASSES)
    return w if _value(H @ w - c, w, c, h) < best else v


def _descent(H: Float, c: Float, h: Blocks, start: Float, passes: int) -> tuple[Float, bool]:
    """The point after so many passes or fewer, and whether it is optimal to rounding."""
    v = start.copy()
    q = H @ v - c
    scale = max(float(np.abs(c).max(initial=0.0)), float(h.weight.max(initial=0.0)), 1e-300)
    members = _members(h)
    curvature = _block_curvature(H, h, members)
    stalled, least = 0, np.inf
    for _ in range(passes):
        errors = violations(q, v, h)
        worst = float(errors.max(initial=0.0))
        stalled = 0 if worst < 0.5 * least else stalled + 1
        least = min(least, worst)
        if worst <= TOLERANCE * scale or (stalled >= STALLED and worst <= 1e-10 * scale):
            return v, True
        if stalled >= HOPELESS:
            break
        _descend(H, q, v, h, _chosen(errors, v, h, TOLERANCE * scale), members, curvature)
        v, q = _to_the_end(H, c, q, v, h)
    return v, False


def _to_the_end(H: Float, c: Float, q: Float, v: Float, h: Blocks) -> tuple[Float, Float]:
    """Newton steps until one takes no coordinate out: the least point with these signs, or none closer.

    Among nearly collinear coordinates a single step ends at the first one that becomes zero; coordinate
    descent would bring that one back, and the next step end there again, for ever.
    """
    for _ in range(len(v)):
        before = np.count_nonzero(v)
        v, q = _newton(H, c, q, v, h)
        if np.count_nonzero(v) >= before:
            break
    return v, q


def violations(q: Float, v: Float, h: Blocks) -> Float:
    """How far each group is from optimal: the distance of −(Hv − c) from ∂h, q = Hv − c."""
    u = q + h.ridge * v
    norms = h.norms(v)
    kept = norms > 0.0
    pull = np.where(kept, h.weight / np.where(kept, norms, 1.0), 0.0)
    return np.where(kept, h.norms(u + pull[h.of] * v), np.maximum(h.norms(u) - h.weight, 0.0))


def _members(h: Blocks) -> list[Array]:
    order = np.argsort(h.of, kind="stable")
    return np.split(order, np.cumsum(np.bincount(h.of, minlength=len(h.weight)))[:-1])


def _block_curvature(H: Float, h: Blocks, members: list[Array]) -> Float:
    """λ_max of each diagonal block; the diagonal where all groups have one coordinate."""
    diagonal = np.diag(H)
    if len(members) == len(diagonal):
        return np.array([diagonal[m[0]] for m in members])
    return np.array([np.linalg.eigvalsh(H[np.ix_(m, m)])[-1] for m in members])


def _chosen(errors: Float, v: Float, h: Blocks, tolerance: float) -> Array:
    """Groups that are not zero, and of the others the worst, at most as many again (at least 20)."""
    active = h.norms(v) > 0.0
    outside = np.flatnonzero(~active & (errors > tolerance))
    room = max(20, int(active.sum()))
    if len(outside) > room:
        outside = outside[np.argsort(-errors[outside], kind="stable")[:room]]
    return np.sort(np.concatenate([np.flatnonzero(active), outside]))


def _descend(
    H: Float, q: Float, v: Float, h: Blocks, chosen: Array, members: list[Array], curvature: Float
) -> None:
    """One pass over the chosen groups; v and q = Hv − c change in place."""
    for g in chosen:
        a, weight, own = float(curvature[g]), float(h.weight[g]), members[g]
        if len(own) == 1:
            j = own[0]
            ridge, old = float(h.ridge[j]), float(v[j])
            if a + ridge <= 0.0:
                continue
            u = a * old - float(q[j])
            new = (u - weight if u > weight else u + weight if u < -weight else 0.0) / (a + ridge)
            if new != old:
                q += (new - old) * H[j]
                v[j] = new
        elif a > 0.0:
            u_g = a * v[own] - q[own]
            size = float(np.sqrt(u_g @ u_g))
            new_g = max(size - weight, 0.0) / (size if size > 0.0 else 1.0) * u_g / (a + h.ridge[own])
            q += (new_g - v[own]) @ H[own]
            v[own] = new_g


def _newton(H: Float, c: Float, q: Float, v: Float, h: Blocks) -> tuple[Float, Float]:
    """A Newton step on the coordinates that are free or not zero, if it is one downhill."""
    norms = h.norms(v)
    A = np.flatnonzero((norms > 0.0)[h.of] | (h.weight == 0.0)[h.of])
    if not A.size:
        return v, H @ v - c
    g, own = h.of[A], v[A]
    safe = np.where(norms > 0.0, norms, 1.0)[g]
    gradient = q[A] + h.ridge[A] * own + h.weight[g] * own / safe
    model = H[np.ix_(A, A)].copy()
    alone = np.bincount(h.of, minlength=len(norms))[g] == 1
    if not alone.all():  # the curvature of ‖v_g‖: (I − v_g v_gᵀ/‖v_g‖²)·λ_g/‖v_g‖
        pull = np.where(alone, 0.0, h.weight[g] / safe)
        same = g[:, None] == g[None, :]
        model -= same * np.multiply.outer(own, own) * (pull / safe**2)[:, None]
        model[np.diag_indices(len(A))] += pull
    model[np.diag_indices(len(A))] += h.ridge[A]
    d = _solved(model, -gradient)
    value, worst = _value(q, v, c, h), float(violations(q, v, h).max())
    penalised = alone & (h.weight[g] > 0.0)
    for step in (1.0, 0.0) if alone.all() else (1.0, 0.3, 0.1, 0.03):
        new = v.copy()
        if step:
            new[A] += step * d
            new[A[penalised & (new[A] * own < 0.0)]] = 0.0
        else:
            new[A] = _along(H[np.ix_(A, A)], q[A], own, d, h.weight[g], h.ridge[A])
        q_new = H @ new - c
        below = _value(q_new, new, c, h) - value
        level = below <= 1e-14 * (abs(value) + 1e-300)
        if below < 0.0 or (level and float(violations(q_new, new, h).max()) < worst):
            return new, q_new
    return v, q


def _along(H: Float, q: Float, v: Float, d: Float, weight: Float, ridge: Float) -> Float:
    """The least point of ½vᵀHv − cᵀv + Σ λ_j|v_j| + ½ Σ r_j v_j² on the ray from v along d, exactly.

    The slope is linear between the points where a coordinate becomes zero, and jumps up there. Where H is
    singular this is what takes superfluous coordinates out, one after the other.
    """
    curvature = float(d @ (H @ d) + ridge @ np.square(d))
    slope = float(d @ (q + ridge * v) + weight @ np.where(v != 0.0, np.sign(v) * d, np.abs(d)))
    crossing = np.flatnonzero((v * d < 0.0) & (weight > 0.0))
    times = -v[crossing] / d[crossing]
    order = np.argsort(times, kind="stable")
    crossing, times = crossing[order], times[order]
    jumps = 2.0 * weight[crossing] * np.abs(d[crossing])
    before = slope + np.concatenate([[0.0], np.cumsum(jumps)])  # less curvature·t, between crossings
    ends = np.append(times, np.inf)
    k = int(np.argmax(before + curvature * np.where(np.isinf(ends), 1e200, ends) >= 0.0))
    t = -before[k] / curvature if curvature > 0.0 else float(ends[k])
    starts = np.append(0.0, times)
    t = float(np.clip(t, starts[k], ends[k]))
    if not np.isfinite(t):
        return v
    new = v + t * d
    new[crossing[times == t]] = 0.0
    return new


def _solved(model: Float, right: Float) -> Float:
    """model⁻¹ right, with as little ridge as a Cholesky factorisation needs."""
    from scipy import linalg  # not needed before, and slow to import

    diagonal = np.diag_indices(len(model))
    ridge = 1e-11 * float(np.trace(model)) / len(model) + 1e-300
    for _ in range(8):
        model[diagonal] += ridge
        try:
            return np.asarray(linalg.cho_solve(linalg.cho_factor(model), right))
        except linalg.LinAlgError:
            ridge *= 100.0
    return right


def _value(q: Float, v: Float, c: Float, h: Blocks) -> float:
    """½vᵀHv − cᵀv + h(v), from q = Hv − c."""
    return 0.5 * float(v @ (q - c)) + h.value(v)


def accelerated(H: Float, c: Float, h: Shrinkage, start: Float) -> Float:
    """The same by accelerated proximal gradient steps with restarts (Beck and Teboulle 2009;
    O'Donoghue and Candès 2015)."""
    L = 1.02 * largest_eigenvalue(lambda u: H @ u, fixed_direction(len(c)), 300)
    if L == 0.0:
        return h.prox(start, 1e12)
    w = v = start
    t, small = 1.0, 0
    for _ in range(STEPS):
        new = h.prox(v - (H @ v - c) / L, 1.0 / L)
        if float((v - new) @ (new - w)) > 0.0:
            t = 1.0
        later = 0.5 + np.sqrt(0.25 + t * t)
        moved = float(np.linalg.norm(new - v))
        v, w, t = new + (t - 1.0) / later * (new - w), new, later
        small = small + 1 if moved <= 1e-14 * (float(np.linalg.norm(w)) + 1e-300) else 0
        if small >= 3 or not moved:
            break
    return w
