import signal

import pytest

import unpooled as up


def pytest_collection_modifyitems(items):
    """Modules with slow tests go first, so that no process waits for the last one of another."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def small():
    """Twelve clients of 30 rows and 40 features."""
    return up.datasets.sparse_regression(seed=2, n_clients=12, n_rows=30, n_features=40, sparsity=8)


@pytest.fixture
def at_a_terminal():
    """Where the tests run in the background, SIGINT may be ignored: within the test it is not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    found = signal.signal(signal.SIGINT, before)
    assert found is signal.default_int_handler
