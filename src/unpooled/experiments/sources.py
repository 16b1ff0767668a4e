"""Where an experiment's data come from: a generator, scikit-learn's digits, or files a user has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unpooled.data import datasets
from unpooled.data.federated import FederatedData
from unpooled.experiments.noisy_quadratic import noisy_quadratic as make_noisy_quadratic


@dataclass(frozen=True)
class Split:
    """Training data, test data where there are any, and a sentence that says what they are."""

    train: FederatedData
    test: FederatedData | None
    what: str


def sparse_regression(seed: int, path: Path | None, **arguments: Any) -> Split:
    """The paper's generator for sparse linear regression."""
    return Split(datasets.sparse_regression(seed=seed, **arguments), None, f"synthetic data of seed {seed}")


def low_rank_regression(seed: int, path: Path | None, **arguments: Any) -> Split:
    """The paper's generator for low-rank matrix estimation."""
    return Split(datasets.low_rank_regression(seed=seed, **arguments), None, f"synthetic data of seed {seed}")


def noisy_quadratic(seed: int, path: Path | None, **arguments: Any) -> Split:
    """Quadratics with a known optimum, for rates."""
    return Split(make_noisy_quadratic(seed, **arguments), None, f"noisy quadratics of seed {seed}")


def digits(seed: int, path: Path | None, test_fraction: float = 0.2) -> Split:
    """scikit-learn's digits by the form they were written on, a part of each form held out."""
    train, test = datasets.digits_by_form().split(test_fraction, seed=seed)
    return Split(train, test, "scikit-learn's digits, one client for each form they were written on")


def emnist(seed: int, path: Path | None, classes: int) -> Split:
    """FEMNIST by the paper's protocol, or, for ten classes, MNIST by NIST writer as its stand-in."""
    folder = Path() if path is None else Path(path)
    npz = folder if folder.suffix == ".npz" else folder / "mnist_by_writer.npz"
    if classes == 10 and npz.is_file():
        train, test = datasets.mnist_by_writer(npz)
        return Split(train, test, "the stand-in MNIST by NIST writer, which is not FEMNIST")
    train, test = datasets.femnist(folder, classes=classes, seed=seed)
    return Split(train, test, f"FEMNIST from {folder}")


SOURCES: dict[str, Callable[..., Split]] = {
    "sparse_regression": sparse_regression,
    "low_rank_regression": low_rank_regression,
    "noisy_quadratic": noisy_quadratic,
    "digits": digits,
    "emnist": emnist,
}
