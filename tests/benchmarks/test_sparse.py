"""The sparse rows of the bench have the non-zeros that they are said to have."""

import numpy as np

from benchmarks import sparse


def test_every_row_has_so_many_features(monkeypatch):
    monkeypatch.setattr(sparse, "BLOCK", 70)  # some blocks, the last one short
    data = sparse.Size(clients=3, features=1000, nonzeros=10).data()
    assert (data.n_clients, data.n_features, data.n_rows) == (3, 1000, 3 * sparse.ROWS)
    assert data.X.data.nbytes + data.X.indices.nbytes == 8 * 10 * data.n_rows
    assert all(len(np.unique(data.X[[i]].indices)) == 10 for i in range(data.n_rows))
    assert np.all(data.X.data != 0)
    assert set(np.unique(data.y)) == {0, 1}
