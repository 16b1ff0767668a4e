"""Ragged data of three clients, handed over in each of three ways."""

import numpy as np
import pandas as pd

from unpooled.data.federated import FederatedData

SIZES = {
    "b": 4,
    "a": 1,
    "c": 3,
}  # ragged, not in order, one client with a single row


def pooled(seed=0, p=3, dtype=float):
    rng = np.random.default_rng(seed)
    clients = rng.permutation(np.repeat(list(SIZES), list(SIZES.values())))
    n = len(clients)
    return rng.standard_normal((n, p)).astype(dtype), rng.standard_normal(n), clients


class Constructor:
    """One data set with one bad cell, handed over in each of three ways; the row number each must report."""

    def __init__(self, way):
        self.way = way

    def __call__(self, X, y, clients, s=None):
        if self.way == "arrays":
            return FederatedData.from_arrays(X, y, clients, s, feature_names=["age", "dose", "size"])
        if self.way == "frame":
            frame = pd.DataFrame(X, columns=["age", "dose", "size"]).assign(out=y, site=clients)
            if s is not None:
                frame["s"] = s
            return FederatedData.from_frame(frame, "out", "site", sample_weight=None if s is None else "s")
        parts = {}
        for name in dict.fromkeys(clients.tolist()):
            own = clients == name
            parts[name] = (X[own], y[own]) if s is None else (X[own], y[own], s[own])
        return FederatedData.from_clients(parts, feature_names=["age", "dose", "size"])

    def row(self, clients, i):
        return int(np.sum(clients[:i] == clients[i])) if self.way == "clients" else i


def frame():
    return pd.DataFrame(
        {
            "age": [1.0, 2, 3],
            "dose": [4, 5, 6],
            "sex": ["f", "m", "f"],
            "day": pd.Timestamp(0),
            "site": [2, 1, 2],
        }
    )
