import pytest

import unpooled as up


@pytest.fixture(scope="session")
def small():
    """Twelve clients of 30 rows and 40 features."""
    return up.datasets.sparse_regression(seed=2, n_clients=12, n_rows=30, n_features=40, sparsity=8)
