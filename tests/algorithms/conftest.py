import numpy as np
import pytest

import unpooled as up


@pytest.fixture(scope="session")
def uneven():
    """Five clients that differ, of 1 to 40 rows."""
    rng = np.random.default_rng(5)
    p, clients = 12, []
    truth = np.concatenate([np.ones(4), np.zeros(p - 4)])
    for n in (7, 40, 1, 23, 12):
        X = rng.standard_normal(p) + rng.standard_normal((n, p))
        clients.append((X, X @ truth + rng.standard_normal(n)))
    return up.FederatedData.from_clients(clients)


@pytest.fixture(scope="session")
def boxes(uneven):
    """The same clients for the literal boxes."""
    return [(pi, client.X, client.y) for pi, client in zip(uneven.weights, uneven, strict=True)]


@pytest.fixture(scope="session")
def start():
    return np.random.default_rng(6).standard_normal(12)
