"""The rates: 1/T and linear speed-up in K for Fast-FedDA, 1/√T for FedDA's last iterate.

The problem has a closed-form optimum: f_k(w) = ½wᵀQw − ⟨Qb_k, w⟩ with Q diagonal, h = λ‖·‖₁, gradients
with noise of size σ. A row of data is the gradient's linear part, x = σε − Qb_k, so that a minibatch of
one row is a noisy gradient. Sixty-four replicates stand side by side in one long w.
"""

import numpy as np
import pytest

import unpooled as up

D, REPLICATES, E, SIGMA, LAM = 10, 64, 4, 3.0, 0.5
Q = np.tile(np.linspace(1.0, 4.0, D), REPLICATES)
L, MU = 4.0, 1.0


class NoisyQuadratic:
    def value(self, w, X, y):
        return 0.5 * np.dot(w, Q * w) + float(np.mean(X @ w))

    def gradient(self, w, X, y):
        return Q * w + X.mean(axis=0)


def clients(K, seed, n_rows=1500):
    """K clients with shifts b_k of size 1 that add up to a fixed b; noise of mean zero in each."""
    rng = np.random.default_rng([seed, K])
    b = np.tile(np.linspace(-1.5, 1.5, D), REPLICATES)
    shifts = rng.standard_normal((K, D * REPLICATES))
    shifts = shifts - shifts.mean(axis=0)
    parts = []
    for k in range(K):
        noise = rng.standard_normal((n_rows, D * REPLICATES)) * SIGMA
        parts.append((noise - noise.mean(axis=0) - Q * (b + shifts[k]), np.zeros(n_rows)))
    optimum = np.sign(b) * np.maximum(np.abs(b) - LAM / Q, 0.0)
    return up.FederatedData.from_clients(parts), optimum


def gap(algorithm, data, optimum, T, seed):
    """φ(w) − φ(w*), averaged over the replicates, after T local steps."""
    problem = up.Problem(NoisyQuadratic(), up.L1(LAM))
    run = up.simulate(algorithm, problem, data, rounds=T // E, batch_size=1, seed=seed, every=T // E)
    return (run.history["objective"][-1] - problem.objective(optimum, data)) / REPLICATES


def slope(x, y):
    return np.polyfit(np.log(x), np.log(y), 1)[0]


@pytest.fixture(scope="module")
def fast():
    return up.FastFedDA(mu=MU, gamma=L, local_steps=E, a=4 * L / MU)


HORIZONS = [256, 512, 1024, 2048, 4096]


def test_fast_fedda_is_one_over_T(fast):
    data, optimum = clients(4, seed=0)
    gaps = [gap(fast, data, optimum, T, seed=0) for T in HORIZONS]
    assert -1.25 < slope(HORIZONS, gaps) < -0.8


def test_fast_fedda_speeds_up_linearly_in_K(fast):
    counts = [1, 2, 4, 8, 16]
    gaps = [gap(fast, *clients(K, seed=1), 1024, seed=1) for K in counts]
    assert -1.25 < slope(counts, gaps) < -0.8


def test_fedda_last_iterate_is_one_over_root_T():
    data, optimum = clients(4, seed=2)
    gaps = [
        gap(up.FedDA(step=2 / (L * np.sqrt(T)), local_steps=E), data, optimum, T, seed=2) for T in HORIZONS
    ]
    assert -0.65 < slope(HORIZONS, gaps) < -0.35
