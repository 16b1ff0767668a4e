"""The formulas of docs/inference.md, word by word, on pooled rows; a setting of known truth."""

import numpy as np
from sklearn.linear_model import Lasso

import unpooled as up

INTERCEPT = 0.7


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def federation(kind, seed, K=10, n=100, p=200, shift=0.5, rho=0.0):
    """Sites whose features differ in their means; neighbouring features are correlated by ρ.

    The first coefficients are 1, −1, ½, −½, ¼, and again; the others are zero.
    """
    rng = np.random.default_rng(seed)
    beta = np.zeros(p)
    beta[: min(10, p)] = np.tile([1.0, -1.0, 0.5, -0.5, 0.25], 2)[: min(10, p)]
    site = np.repeat(np.arange(K), n)
    X = rng.standard_normal((K * n, p))
    for j in range(1, p if rho else 0):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    X += shift * rng.standard_normal((K, p))[site]
    z = X @ beta + INTERCEPT
    y = (
        z + rng.standard_normal(K * n)
        if kind == "squared"
        else (rng.random(K * n) < sigmoid(z)).astype(float)
    )
    return up.FederatedData.from_arrays(X, y, site), beta


def problem(kind, lam, intercept=True):
    return up.Problem(up.Squared() if kind == "squared" else up.Logistic(), up.L1(lam), intercept)


def nodewise(rows, lam):
    """Θ from p lassos on the rows themselves, in scikit-learn."""
    n, p = rows.shape
    scale = np.sqrt(np.mean(rows**2, axis=0))
    Z = rows / scale
    theta = np.zeros((p, p))
    for j in range(p):
        others = np.arange(p) != j
        gamma = (
            Lasso(alpha=lam, fit_intercept=False, tol=1e-13, max_iter=100_000)
            .fit(Z[:, others], Z[:, j])
            .coef_
        )
        square = Z[:, j] @ (Z[:, j] - Z[:, others] @ gamma) / n
        theta[j, others], theta[j, j] = -gamma / square, 1.0 / square
    return theta / np.multiply.outer(scale, scale)


def squared(X, y, w, lam_node):
    """(estimate, model's standard error, robust standard error) with an intercept."""
    n = len(y)
    X, y = X - X.mean(axis=0), y - y.mean()
    theta = nodewise(X, lam_node)
    r = y - X @ w
    df = n - np.count_nonzero(w) - 1
    b = w + theta @ X.T @ r / n
    A = theta @ X.T
    return (
        b,
        np.sqrt(r @ r / df * np.sum(A**2, axis=1)) / n,
        np.sqrt(np.sum((A * r) ** 2, axis=1) * n / df) / n,
    )


def maximum_likelihood(A, y, start=None):
    w = np.zeros(A.shape[1]) if start is None else start
    for _ in range(60):
        m = sigmoid(A @ w)
        w = w - np.linalg.solve((A.T * (m * (1 - m))) @ A, A.T @ (m - y))
    return w


def logistic(X, y, w, lam_node):
    """The same for logistic regression, around the maximum likelihood on the significant columns of w."""
    (n, p), kept = X.shape, np.flatnonzero(w)
    for _ in range(2):  # on the support; on what stands out there
        A = np.column_stack([X[:, kept], np.ones(n)])
        base = maximum_likelihood(A, y)
        m = sigmoid(A @ base)
        v = m * (1 - m)
        se = np.sqrt(np.diag(np.linalg.inv((A.T * v) @ A)))
        point = np.zeros(p)
        point[kept] = base[:-1]
        kept = kept[np.abs(base / se)[:-1] >= np.sqrt(2 * np.log(p))]
    centred = X - v @ X / v.sum()
    theta = nodewise(centred * np.sqrt(v)[:, None], lam_node)
    B = theta @ centred.T
    b = point + B @ (y - m) / n
    return b, np.sqrt(np.sum(B**2 * v, axis=1)) / n, np.sqrt(np.sum((B * (y - m)) ** 2, axis=1)) / n
