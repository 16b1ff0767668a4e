"""Small problems for the exact solvers: sites whose features differ in their means."""

import numpy as np
from scipy import sparse

import unpooled as up

LOSSES = {
    "squared": up.Squared(),
    "logistic": up.Logistic(),
    "softmax": up.Softmax(n_classes=3),
    "poisson": up.Poisson(),
    "huber": up.Huber(),
}


def targets(kind, z, rng):
    if kind == "squared":
        return z + rng.standard_normal(len(z)) + 2.0
    if kind == "huber":
        return z + rng.standard_t(2, len(z)) + 1.0
    if kind == "logistic":
        return (rng.random(len(z)) < 1.0 / (1.0 + np.exp(-z - 0.5))).astype(float)
    if kind == "poisson":
        return rng.poisson(np.exp(np.clip(0.4 * z + 0.5, -4, 3))).astype(float)
    return np.argmax(np.stack([z, -z, 0.5 * z + 1]) + rng.gumbel(size=(3, len(z))), axis=0).astype(float)


def rows(kind, n=300, p=20, sites=5, shift=0.5, seed=0):
    """Pooled X and y, and the site of each row."""
    rng = np.random.default_rng(seed)
    clients = np.arange(n) % sites
    X = rng.standard_normal((n, p)) + shift * rng.standard_normal((sites, p))[clients]
    w = np.zeros(p)
    w[:4] = [1.0, -1.0, 0.5, -0.5][:p]
    return X, targets(kind, X @ w, rng), clients


def federated(kind, as_csr=False, **options):
    X, y, clients = rows(kind, **options)
    return up.FederatedData.from_arrays(sparse.csr_array(X) if as_csr else X, y, clients)


def multilevel(kind, n=400, sites=8, seed=0):
    """Rows of five features, of which 1 and 3 are the same in all rows of a site: a mean, a type."""
    rng = np.random.default_rng(seed)
    clients = np.arange(n) % sites
    X = rng.standard_normal((n, 5))
    X[:, 1] = (50.0 + 3.0 * rng.standard_normal(sites))[clients]
    X[:, 3] = (np.arange(sites) % 2)[clients]
    z = X[:, 0] - 0.5 * X[:, 2] + 0.5 * rng.standard_normal(sites)[clients]
    return X, targets(kind, z, rng), clients
