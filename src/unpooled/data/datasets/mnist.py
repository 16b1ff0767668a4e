"""MNIST's digits by the writers NIST recorded: a stand-in for EMNIST-10 where that cannot be had."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unpooled.data.federated import FederatedData

FILE = "mnist_by_writer.npz"


def mnist_by_writer(
    path: str | os.PathLike[str], part: Literal["paper", "all"] = "paper"
) -> tuple[FederatedData, FederatedData]:
    """(train, test) of MNIST by NIST writer: X (N, 784) float32 in [0, 1], y in 0 … 9, ids writer numbers.

    It is not FEMNIST and its results are not FEMNIST's: MNIST's digits are size-normalised and centred, and
    black is 1 on a background of 0, where FEMNIST has a background of 1.

    ``part``: "paper" is a subset of the size of the paper's EMNIST-10: 367 writers, a tenth of each one's
    digits in the test (36 835 / 4 090 rows). "all" is MNIST's own split, 60 000 / 10 000 rows; its 539
    training and 297 test writers are different people, so that its test is on clients never seen.

    ``path`` is mnist_by_writer.npz or its folder: arrays X (n, 784) uint8, y, writer, mnist_test (bool) and
    part367 (−1 unused, 0 train, 1 test).
    """
    if part not in ("paper", "all"):
        raise ValueError(f'part must be "paper" or "all", got {part!r}')
    split_name = "part367" if part == "paper" else "mnist_test"
    X, y, writer, split = _read(Path(path), ("X", "y", "writer", split_name))
    train, test = (np.flatnonzero(split == side) for side in (0, 1))
    if not (len(train) and len(test)):
        raise ValueError(f"{split_name} marks {len(train)} rows as train and {len(test)} as test")
    return _federated(X, y, writer, train), _federated(X, y, writer, test)


def _read(path: Path, names: tuple[str, ...]) -> list[NDArray[Any]]:
    """The named arrays, the first of them images, with one row each."""
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}: give the path of {FILE} or of its folder")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not an npz file, or is broken")
    with np.load(path) as file:
        missing = [name for name in names if name not in file]
        if missing:
            raise ValueError(f"{path} has no array {', '.join(missing)}; it has {', '.join(file)}")
        arrays = [file[name] for name in names]
    X = arrays[0]
    if X.ndim != 2 or X.shape[1] != 784 or X.dtype != np.uint8:
        raise ValueError(f"X in {path} must be uint8 of shape (n, 784), got {X.dtype} of shape {X.shape}")
    for name, array in zip(names[1:], arrays[1:], strict=True):
        if array.shape != (len(X),) or array.dtype.kind not in "bui":
            got = f"{array.dtype} of shape {array.shape}"
            raise ValueError(f"{name} in {path} must hold {len(X)} whole numbers, got {got}")
    return arrays


def _federated(
    X: NDArray[np.uint8], y: NDArray[Any], writer: NDArray[Any], rows: NDArray[np.intp]
) -> FederatedData:
    rows = rows[np.argsort(writer[rows], kind="stable")]  # sorted here, where a pixel is a byte
    pixels = np.divide(X[rows], np.float32(255), dtype=np.float32)
    return FederatedData.from_arrays(pixels, y[rows], writer[rows])
