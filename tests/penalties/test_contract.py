"""What every penalty promises, for every penalty."""

import math

import numpy as np
import pytest

from unpooled.penalties import L1, Nuclear, Zero
from unpooled.penalties.base import Penalty

from .truth import CASES, cvxpy_prox, objective

every = pytest.mark.parametrize(("penalty", "shape"), CASES.values(), ids=CASES.keys())


def drawn(shape, seed, scale=2.0):
    """A random v and center, with ties and zeros."""
    rng = np.random.default_rng(seed)
    v, center = rng.normal(size=shape) * scale, rng.normal(size=shape) * scale
    if v.size > 1:
        v.flat[0] = 0.0
        center.flat[-1] = 0.0
        v.flat[-1] = v.flat[-2]
    return v, center


def check(penalty, v, step, center, radius, ball, tolerance=2e-5):
    """Ours is feasible, no worse than cvxpy's, and the same point."""
    w = penalty.constrained_prox(v, step, center, radius, ball)
    size = max(np.linalg.norm(v), np.linalg.norm(center), 1e-300)
    assert penalty.norm(w - center) <= radius + 1e-10 * (radius if radius < np.inf else 0.0) + 1e-13 * size
    assert np.linalg.norm(w) <= ball * (1 + 1e-10)
    truth = cvxpy_prox(penalty, v, step, center, radius, ball)
    assert objective(penalty, w, v, step) <= objective(penalty, truth, v, step) + 1e-6 * size**2
    assert np.linalg.norm(w - truth) <= tolerance * size
    return w


@every
@pytest.mark.parametrize("seed", range(4))
def test_prox_is_cvxpys(penalty, shape, seed):
    v, _ = drawn(shape, seed)
    step = [0.3, 1.0, 5.0, 0.0][seed]
    w = penalty.prox(v, step)
    truth = cvxpy_prox(penalty, v, step)
    assert w.shape == v.shape
    np.testing.assert_allclose(w, truth, atol=2e-5)
    assert objective(penalty, w, v, step) <= objective(penalty, truth, v, step) + 1e-9


@every
@pytest.mark.parametrize("fraction", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_constrained_prox_is_cvxpys(penalty, shape, fraction, seed):
    v, center = drawn(shape, seed)
    step = [0.2, 1.0, 4.0][seed]
    radius = fraction * penalty.norm(penalty.prox(v, step) - center)
    check(penalty, v, step, center, radius, math.inf)


@every
@pytest.mark.parametrize("seed", range(3))
def test_with_both_constraints_active(penalty, shape, seed):
    v, center = drawn(shape, seed)
    radius = 0.5 * penalty.norm(penalty.prox(v, 1.0) - center)
    free = np.linalg.norm(penalty.constrained_prox(v, 1.0, center, radius))
    # The point of least norm that the radius allows is the constrained prox of 0 with no penalty.
    least = np.linalg.norm(penalty.constrained_prox(0 * v, 0.0, center, radius))
    if not isinstance(penalty, Zero) and least > 1e-3:
        with pytest.raises(ValueError, match="feasible set is empty"):
            penalty.constrained_prox(v, 1.0, center, radius, 0.99 * least)
    if free - least > 1e-3 * free:
        ball = least + 0.5 * (free - least)
        w = check(penalty, v, 1.0, center, radius, ball, tolerance=2e-4)
        assert np.linalg.norm(w) == pytest.approx(ball, rel=1e-10)


@every
def test_ball_alone(penalty, shape):
    v, center = drawn(shape, 5)
    ball = 0.5 * np.linalg.norm(penalty.prox(v, 0.3))
    w = check(penalty, v, 0.3, center, math.inf, ball)
    assert np.linalg.norm(w) == pytest.approx(ball, rel=1e-12)


@every
def test_inactive_constraints_change_nothing(penalty, shape):
    v, center = drawn(shape, 6)
    w = penalty.prox(v, 0.5)
    distance = penalty.norm(w - center)
    for radius, ball in [
        (math.inf, math.inf),
        (2 * distance, math.inf),
        (2 * distance, 1e3),
        (distance, 1e3),
    ]:
        np.testing.assert_allclose(penalty.constrained_prox(v, 0.5, center, radius, ball), w, atol=1e-12)


@every
def test_radius_zero_gives_the_center(penalty, shape):
    v, center = drawn(shape, 7)
    if isinstance(penalty, Zero):
        center = v
    np.testing.assert_array_equal(penalty.constrained_prox(v, 0.5, center, 0.0), center)
    np.testing.assert_array_equal(
        penalty.constrained_prox(v, 0.5, center, 0.0, np.linalg.norm(center)), center
    )


@every
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scale(penalty, shape, scale):
    """Norms are homogeneous: the problem of (scale·v, scale·λ, scale·radius) has the solution scale·w."""
    if hasattr(penalty, "l1_ratio") and penalty.l1_ratio < 1.0:
        pytest.skip("R is not homogeneous")
    v, center = drawn(shape, 8)
    radius = 0.4 * penalty.norm(penalty.prox(v, 1.0) - center)
    w = penalty.constrained_prox(v, 1.0, center, radius)
    scaled = penalty.constrained_prox(scale * v, scale, scale * center, scale * radius)
    np.testing.assert_allclose(scaled / scale, w, atol=1e-9)


@every
def test_firmly_nonexpansive(penalty, shape):
    """‖Px − Py‖² ≤ ⟨Px − Py, x − y⟩, with and without the constraints."""
    center = drawn(shape, 9)[1]
    radius, ball = 0.5 * penalty.norm(center), 0.8 * np.linalg.norm(center)
    for seed in range(5):
        x, y = drawn(shape, 10 + seed)
        for P in (
            lambda v: penalty.prox(v, 0.6),
            lambda v: penalty.constrained_prox(v, 0.6, center, radius),
            lambda v: penalty.constrained_prox(v, 0.6, 0.9 * center, radius, ball),
        ):
            d = P(x) - P(y)
            assert np.sum(d * d) <= np.sum(d * (x - y)) + 1e-8


@every
def test_prox_leaves_a_subgradient(penalty, shape):
    """Moreau: (v − w)/step is in ∂h(w), so h(u) ≥ h(w) + ⟨v − w, u − w⟩/step for every u."""
    v, _ = drawn(shape, 11)
    w = penalty.prox(v, 0.7)
    g = (v - w) / 0.7
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-4, 0.1, 3.0):
        u = w + size * rng.normal(size=shape) if size else 0 * w
        assert penalty.value(u) >= penalty.value(w) + np.sum(g * (u - w)) - 1e-12


@every
def test_subgradient(penalty, shape):
    rng = np.random.default_rng(1)
    for w in (rng.normal(size=shape), penalty.prox(rng.normal(size=shape), 1.0), np.zeros(shape)):
        g = penalty.subgradient(w)
        for size in (1e-3, 1.0):
            u = w + size * rng.normal(size=shape)
            assert penalty.value(u) >= penalty.value(w) + np.sum(g * (u - w)) - 1e-12
    assert not penalty.subgradient(np.zeros(shape)).any()


@every
def test_dual_norm_is_hoelders(penalty, shape):
    """⟨u, w⟩ ≤ R*(u) R(w), with equality where u is a subgradient of R at w."""
    if isinstance(penalty, Zero) or getattr(penalty, "l1_ratio", 1.0) < 1.0:
        pytest.skip("R is not a norm")
    rng = np.random.default_rng(2)
    for _ in range(20):
        u, w = rng.normal(size=(2, *shape))
        assert np.sum(u * w) <= penalty.dual_norm(u) * penalty.norm(w) + 1e-12
        g = penalty.with_lam(1.0).subgradient(w)
        assert np.sum(g * w) == pytest.approx(penalty.dual_norm(g) * penalty.norm(w))
        assert penalty.dual_norm(g) == pytest.approx(1.0)


@every
def test_lambda_max(penalty, shape):
    """0 minimises ½‖w − v‖² + λR(w) exactly from λ = lambda_max on; −v is the gradient at 0."""
    v, _ = drawn(shape, 12)
    largest = penalty.lambda_max(-v)
    assert penalty.lambda_max(0 * v) == 0.0
    if math.isinf(largest):
        assert penalty.with_lam(1e6).prox(v, 1.0).any()
        return
    assert np.linalg.norm(penalty.with_lam(largest * (1 + 1e-12)).prox(v, 1.0)) <= 1e-14
    assert penalty.with_lam(largest * 0.999).prox(v, 1.0).any()


@every
def test_float32(penalty, shape):
    """Computed in float64, rounded once."""
    v, center = (x.astype(np.float32) for x in drawn(shape, 14))
    w = penalty.prox(v, 0.5)
    assert w.dtype == np.float32
    np.testing.assert_array_equal(w, penalty.prox(v.astype(np.float64), 0.5).astype(np.float32))
    radius = 0.5 * penalty.norm(w - center)
    w = penalty.constrained_prox(v, 0.5, center, radius)
    assert w.dtype == np.float32
    exact = penalty.constrained_prox(v.astype(np.float64), 0.5, center.astype(np.float64), radius)
    np.testing.assert_array_equal(w, exact.astype(np.float32))


@every
def test_not_finite_stays_visible(penalty, shape):
    """A run that diverges must be seen to: kernels answer NaN or infinity with the same, and do not raise."""
    record, n = penalty.record(shape), math.prod(shape)
    for bad in (math.nan, math.inf):
        v, out = np.ones(n), np.zeros(n)
        v[0] = bad
        record.prox(v.copy(), 0.5, out)
        assert not np.isfinite(out).all()
        out[:] = 0.0
        record.constrained_prox(v.copy(), 0.5, np.zeros(n), 1.0, 2.0, out)
        assert not np.isfinite(out).all()


@every
def test_inputs_are_kept(penalty, shape):
    v, center = drawn(shape, 15)
    before = v.copy(), center.copy()
    penalty.prox(v, 0.5)
    penalty.constrained_prox(v, 0.5, center, 1e3, 1e3)
    np.testing.assert_array_equal(v, before[0])
    np.testing.assert_array_equal(center, before[1])


@every
def test_layouts_agree(penalty, shape):
    """Order "F" is the column-major flattening of the same matrix."""
    v, center = drawn(shape, 16)
    if v.ndim == 1:
        pytest.skip("a vector has one layout")
    radius = 0.4 * penalty.norm(penalty.prox(v, 1.0) - center)
    out = np.empty(v.size)
    penalty.record(shape, "F").constrained_prox(v.ravel("F"), 1.0, center.ravel("F"), radius, 1e3, out)
    np.testing.assert_allclose(
        out.reshape(shape, order="F"), penalty.constrained_prox(v, 1.0, center, radius, 1e3), atol=1e-9
    )
    np.testing.assert_allclose(penalty.prox(np.asfortranarray(v), 1.0), penalty.prox(v, 1.0), atol=1e-14)


@every
def test_refuses(penalty, shape):
    v, center = drawn(shape, 17)
    holed = v.copy()
    holed.flat[0] = np.nan
    for match, call in [
        ("v holds nan", lambda: penalty.prox(holed, 1.0)),
        ("step=-1", lambda: penalty.prox(v, -1)),
        ("step=nan", lambda: penalty.prox(v, math.nan)),
        ("center has shape", lambda: penalty.constrained_prox(v, 1.0, center[..., :-1], 1.0)),
        ("center holds nan", lambda: penalty.constrained_prox(v, 1.0, holed, 1.0)),
        ("radius=-0.1", lambda: penalty.constrained_prox(v, 1.0, center, -0.1)),
        ("radius=nan", lambda: penalty.constrained_prox(v, 1.0, center, math.nan)),
        ("ball=0", lambda: penalty.constrained_prox(v, 1.0, center, 1.0, ball=0)),
        ("lam=-1", lambda: penalty.with_lam(-1)),
        ("lam=nan", lambda: penalty.with_lam(math.nan)),
        ("lam=inf", lambda: penalty.with_lam(math.inf)),
    ]:
        with pytest.raises(ValueError, match=match):
            call()
    with pytest.raises(TypeError, match="lam='much'"):
        penalty.with_lam("much")


@every
def test_is_a_value(penalty, shape):
    assert penalty == penalty.with_lam(penalty.lam)
    assert hash(penalty) == hash(penalty.with_lam(penalty.lam))
    assert isinstance(penalty, Zero) or penalty != penalty.with_lam(2.0)
    assert isinstance(penalty, Zero) or penalty.with_lam(2).lam == 2.0
    assert type(penalty).__name__ in repr(penalty)
    assert penalty.value(np.zeros(shape)) == 0.0


def test_nuclear_takes_matrices():
    for call in (Nuclear(1.0).norm, lambda w: Nuclear(1.0).prox(w, 1.0)):
        with pytest.raises(ValueError, match="matrices"):
            call(np.ones(3))


def test_a_penalty_of_ones_own():
    class NonNegative(Penalty):
        lam = 1.0

        def norm(self, w):
            return 0.0 if (np.asarray(w) >= 0).all() else math.inf

        def prox(self, v, step):
            return np.maximum(v, 0.0)

    penalty = NonNegative()
    assert penalty.value(penalty.prox(np.array([-1.0, 2.0]), 1.0)) == 0.0
    with pytest.raises(NotImplementedError, match="NonNegative has no record"):
        penalty.record((2,))
    with pytest.raises(TypeError):
        Penalty()
    assert L1(lam=2) == L1(2.0)
