"""The separable penalties to the last bits: against nested bisection, and at the corners."""

import math

import numpy as np
import pytest

from unpooled.penalties import L1, ElasticNet, GroupL2

from .truth import bisected_prox, objective


def test_worked_example():
    """Thresholding and then projecting gives (0.9, 6.1), objective 10.425."""
    v, center = np.array([-0.9, 8.0]), np.array([5.0, 0.0])
    w = L1(1.0).constrained_prox(v, 1.0, center, 10.2)
    np.testing.assert_allclose(w, [0.0, 5.2], atol=1e-15)
    assert w[0] == 0.0
    assert objective(L1(1.0), w, v, 1.0) == pytest.approx(9.525, abs=1e-14)


@pytest.mark.parametrize("ratio", [1.0, 0.6, 0.01, 0.0])
@pytest.mark.parametrize("seed", range(6))
def test_against_bisection(ratio, seed):
    rng = np.random.default_rng(seed)
    p = [1, 3, 6, 6, 6, 6][seed]
    v, center = rng.integers(-3, 4, size=(2, p)) * 1.0 if seed % 2 else rng.normal(size=(2, p)) * 3
    lam = rng.choice([0.0, 0.1, 1.0, 4.0])
    penalty = L1(lam) if ratio == 1.0 else ElasticNet(lam, ratio)
    for fraction in (1e-6, 0.1, 0.5, 0.999):
        radius = fraction * penalty.norm(penalty.prox(v, 1.0) - center)
        w = penalty.constrained_prox(v, 1.0, center, radius)
        np.testing.assert_allclose(w, bisected_prox(v, lam, center, radius, ratio), atol=2e-13)


@pytest.mark.parametrize("seed", range(20))
def test_group_satisfies_its_optimality_conditions(seed):
    """w − v + λω ∂‖w‖ + θω ∂‖w − c‖ ∋ 0 in every group, for one θ ≥ 0."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(5), 3)
    weights = rng.uniform(0.3, 2.0, size=5)
    v, center = rng.normal(size=(2, 15)) * rng.choice([0.1, 1.0, 10.0])
    center[labels == 0] = 0.0
    v[labels == 1] = center[labels == 1] * rng.choice([-2.0, 0.5, 3.0])  # along the center
    v[labels == 2] = 0.0
    lam = rng.choice([0.01, 0.5, 2.0])
    penalty = GroupL2(lam, labels, weights)
    radius = rng.choice([0.05, 0.4, 0.9]) * penalty.norm(penalty.prox(v, 1.0) - center)
    w = penalty.constrained_prox(v, 1.0, center, radius)
    size = np.linalg.norm(v) + np.linalg.norm(center)
    assert penalty.norm(w - center) == pytest.approx(radius, abs=1e-13 * size)
    forced, low, high = [], 0.0, math.inf
    for g in range(5):
        x, y, b = w[labels == g], v[labels == g], center[labels == g]
        if (b == 0.0).all():  # soft thresholding by λ + θ
            if x.any():
                forced.append((np.linalg.norm(y) - np.linalg.norm(x)) / weights[g] - lam)
            else:
                low = max(low, np.linalg.norm(y) / weights[g] - lam)
        elif (x == b).all():
            low = max(low, np.linalg.norm(y - b - lam * weights[g] * b / np.linalg.norm(b)) / weights[g])
        elif x.any():
            r = y - x - lam * weights[g] * x / np.linalg.norm(x)  # = θω (w − c)/‖w − c‖
            forced.append(np.linalg.norm(r) / weights[g])
            d = (x - b) / np.linalg.norm(x - b)
            np.testing.assert_allclose(r, np.linalg.norm(r) * d, atol=1e-11 * size)
        else:  # ‖v + θω b/‖b‖‖ ≤ λω bounds θ on both sides
            e = b / np.linalg.norm(b)
            rest = math.sqrt((lam * weights[g]) ** 2 - max(np.sum(y**2) - (y @ e) ** 2, 0.0))
            low, high = max(low, (-y @ e - rest) / weights[g]), min(high, (-y @ e + rest) / weights[g])
    if forced:
        np.testing.assert_allclose(forced, forced[0], atol=1e-11 * size)
        assert low - 1e-11 * size <= forced[0] <= high + 1e-11 * size
    assert low <= high + 1e-11 * size


def test_groups_of_one_are_the_l1_norm():
    rng = np.random.default_rng(0)
    for _ in range(30):
        v, center = rng.normal(size=(2, 6)) * rng.choice([0.2, 3.0])
        lam, radius, ball = rng.uniform(0, 2), rng.uniform(0.1, 4.0), rng.uniform(2.0, 4.0)
        for bound in (math.inf, ball):
            try:
                expected = L1(lam).constrained_prox(v, 1.0, center, radius, bound)
            except ValueError:
                continue
            w = GroupL2(lam, range(6)).constrained_prox(v, 1.0, center, radius, bound)
            np.testing.assert_allclose(w, expected, atol=1e-11)
            w = ElasticNet(lam, 1.0).constrained_prox(v, 1.0, center, radius, bound)
            np.testing.assert_allclose(w, expected, atol=1e-12)


def test_multiplier_at_a_breakpoint():
    """Radii at which a coordinate just arrives at its center, or at zero, or waits at zero."""
    v, center, penalty = np.array([3.0, -4.0]), np.array([1.0, 2.0]), L1(1.0)
    for theta in np.arange(0.0, 8.5, 0.5):
        b = np.abs(center)
        w = np.maximum(v - 1 - theta, np.minimum(b, np.maximum(v - 1 + theta, np.minimum(0, v + 1 + theta))))
        radius = np.abs(w - center).sum()
        np.testing.assert_allclose(penalty.constrained_prox(v, 1.0, center, radius), w, atol=1e-14)


def test_pinned_at_zero_everywhere():
    """All of w stays at 0 for a while as θ grows: the search must leave the plateau."""
    v, center = np.array([0.1, -0.2, 0.0]), np.array([1.0, 2.0, -1.0])
    for penalty in (L1(50.0), ElasticNet(50.0, 0.5), GroupL2(50.0, [0, 0, 1])):
        radius = 0.5 * penalty.norm(center)
        w = penalty.constrained_prox(v, 1.0, center, radius)
        assert penalty.norm(w - center) == pytest.approx(radius, rel=1e-12)


def test_point_of_least_norm():
    """The projection of 0 on the radius: λ = 0 and v = 0, where nothing is pinned."""
    center = np.array([3.0, 1.0])
    np.testing.assert_allclose(L1(0.0).constrained_prox(0 * center, 1.0, center, 2.0), [1.0, 1.0], atol=1e-15)
    w = GroupL2(0.0, [0, 0]).constrained_prox(0 * center, 1.0, center, 1.0)
    np.testing.assert_allclose(w, center * (1 - 1 / math.sqrt(10)), atol=1e-15)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_radius_far_below_the_data(scale):
    rng = np.random.default_rng(3)
    v, center = scale * rng.normal(size=(2, 50))
    for penalty in (
        L1(scale),
        ElasticNet(1.0, 0.5),
        ElasticNet(1.0, 0.0),
        GroupL2(scale, np.arange(50) // 5),
    ):
        radius = 1e-9 * penalty.norm(center)
        w = penalty.constrained_prox(v, 1.0, center, radius)
        assert penalty.norm(w - center) <= radius + 1e-13 * penalty.norm(center)


def test_feasible_set_of_one_point():
    center = np.array([3.0, 4.0])
    w = L1(1.0).constrained_prox(np.array([9.0, 9.0]), 1.0, center, 1.0, math.hypot(3.0, 3.0))
    np.testing.assert_allclose(w, [3.0, 3.0], atol=1e-9)


@pytest.mark.parametrize("penalty", [L1(0.1), ElasticNet(1e-6, 0.5), GroupL2(0.1, [0, 1, 0, 1])])
@pytest.mark.parametrize("fraction", [1e-6, 1e-3, 0.5])
def test_ball_that_leaves_a_sliver(penalty, fraction):
    """By symmetry w = x·1, and the ball decides x; ‖w(s)‖ is steep in s."""
    v, center = np.full(4, 2.0), np.full(4, 1.0)
    radius = 0.03 * penalty.norm(center)
    least = np.linalg.norm(penalty.with_lam(0.0).constrained_prox(0 * v, 1.0, center, radius))
    free = np.linalg.norm(penalty.constrained_prox(v, 1.0, center, radius))
    ball = least + fraction * (free - least)
    w = penalty.constrained_prox(v, 1.0, center, radius, ball)
    np.testing.assert_allclose(w, np.full(4, ball / 2), rtol=1e-14)
