"""Outside truths: cvxpy for every penalty, and brute-force bisection where a penalty splits."""

import functools
import warnings

import cvxpy as cp
import numpy as np

from unpooled.penalties import L1, ElasticNet, GroupL2, Nuclear, Zero

VECTOR = (7,)
MATRIX = (5, 4)
LABELS = ("b", "a", "b", "c", "a", "b", "c")

# Every penalty the contract runs over: a new one is tested by being listed here.
CASES = {
    "zero": (Zero(), VECTOR),
    "l1": (L1(0.7), VECTOR),
    "l1, p = 1": (L1(0.7), (1,)),
    "l1, weights": (L1(0.7, (0.5, 2.0, 1.0, 0.1, 3.0, 1.0, 0.7)), VECTOR),
    "l1, weights of a matrix": (L1(0.7, (0.5, 2.0, 1.0, 0.1, 3.0)), MATRIX),
    "elastic net, weights": (ElasticNet(0.7, 0.4, (0.5, 2.0, 1.0, 0.1, 3.0, 1.0, 0.7)), VECTOR),
    "elastic net": (ElasticNet(0.7, 0.4), VECTOR),
    "elastic net, ridge": (ElasticNet(0.7, 0.0), VECTOR),
    "elastic net, lasso": (ElasticNet(0.7, 1.0), VECTOR),
    "group": (GroupL2(0.7, LABELS), VECTOR),
    "group, sqrt": (GroupL2(0.7, LABELS, "sqrt"), VECTOR),
    "group, weights": (GroupL2(0.7, [[0, 3], [1, 2, 6], [4], [5]], (0.5, 2.0, 1.0, 0.1)), VECTOR),
    "group, matrix": (GroupL2(0.7, [0, 1, 0, 2, 1]), MATRIX),
    "nuclear": (Nuclear(0.7), MATRIX),
    "nuclear, wide": (Nuclear(0.7), (3, 5)),
    "nuclear, one row": (Nuclear(0.7), (1, 4)),
}


def expression(penalty, w):
    """R(w) as a cvxpy expression."""
    match penalty:
        case Zero():
            return cp.Constant(0.0)
        case L1():
            return cp.sum(cp.multiply(weights(penalty, w), cp.abs(w)))
        case ElasticNet(l1_ratio=ratio):
            u = weights(penalty, w)
            squares = cp.sum(cp.multiply(u, cp.square(w)))
            return ratio * cp.sum(cp.multiply(u, cp.abs(w))) + 0.5 * (1.0 - ratio) * squares
        case Nuclear():
            return cp.normNuc(w)
        case GroupL2():
            record = penalty.record(w.shape)
            flat = cp.vec(w, order="C")
            blocks = [record.members[a:b] for a, b in zip(record.starts, record.starts[1:], strict=False)]
            return cp.sum([o * cp.norm2(flat[i]) for o, i in zip(record.weights, blocks, strict=True)])


def weights(penalty, w):
    """The weights in w's shape; those given per row of a matrix serve its columns."""
    if penalty.weights is None:
        return np.ones(w.shape)
    u = np.array(penalty.weights)
    return np.broadcast_to(u if u.ndim == w.ndim else u[:, None], w.shape)


@functools.cache
def _problem(penalty, shape, has_radius, has_ball):
    w = cp.Variable(shape)
    v, center = cp.Parameter(shape), cp.Parameter(shape)
    t, radius, ball = (cp.Parameter(nonneg=True) for _ in range(3))
    constraints = [expression(penalty, w - center) <= radius] if has_radius else []
    constraints += [cp.norm2(cp.vec(w, order="C")) <= ball] if has_ball else []
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w - v) + t * expression(penalty, w)), constraints)
    return problem, w, v, center, t, radius, ball


def cvxpy_prox(penalty, v, step, center=None, radius=np.inf, ball=np.inf):
    """The constrained prox by an interior-point solver; good to about 1e-7."""
    has_radius = radius < np.inf and not isinstance(penalty, Zero)
    problem, w, *parameters = _problem(penalty, v.shape, has_radius, ball < np.inf)
    values = (v, np.zeros_like(v) if center is None else center, step * penalty.lam, radius, ball)
    for parameter, value in zip(parameters, values, strict=True):
        if np.all(np.isfinite(value)):
            parameter.value = value
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        for tolerance in (1e-11, 1e-9, 1e-8):  # some problems do not bear the tightest
            try:
                problem.solve(
                    solver=cp.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance
                )
                break
            except cp.SolverError:
                w.value = None
    return w.value


def objective(penalty, w, v, step):
    return 0.5 * np.sum((w - v) ** 2) + step * penalty.value(w)


def bisect(increasing, low, high):
    """The root of an increasing function, to the last bit."""
    for _ in range(2000):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (low, middle) if increasing(middle) > 0 else (middle, high)
    return high


def bisected_scalar(v, b, lam, theta, ratio):
    """argmin ½(w − v)² + λr(w) + θr(w − b), r the elastic net, by bisection on its derivative."""

    def slope(w):
        def r(x):
            return ratio * np.sign(x) + (1.0 - ratio) * x

        return w - v + lam * r(w) + theta * r(w - b)

    for kink in (0.0, b):
        left, right = slope(np.nextafter(kink, -np.inf)), slope(np.nextafter(kink, np.inf))
        if left <= 0.0 <= right:
            return kink
    reach = abs(v) + abs(b) + 1.0
    return bisect(slope, -reach, reach)


def bisected_prox(v, lam, center, radius, ratio):
    """The radius-constrained prox of the ℓ1 norm (ratio = 1) or elastic net, by nested bisection."""

    def at(theta):
        return np.array([bisected_scalar(x, b, lam, theta, ratio) for x, b in zip(v, center, strict=True)])

    def distance(w):
        d = np.abs(w - center)
        return ratio * d.sum() + 0.5 * (1.0 - ratio) * (d**2).sum()

    if distance(at(0.0)) <= radius:
        return at(0.0)
    high = 1.0
    while distance(at(high)) > radius:
        high *= 2.0
    return at(bisect(lambda theta: radius - distance(at(theta)), 0.0, high))
