"""LEAF's FEMNIST: handwritten characters by writer, in json files too large to hold in memory.

The folders ``train`` and ``test`` hold files ``all_data_*.json``, each of them
{"users": [name, …], "num_samples": [n, …], "user_data": {name: {"x": [n lists of 784], "y": [n labels]}, …}}.
A writer is in one file of either folder; one whom LEAF could not split has an empty entry and is not listed.
The lists at the head of a file are cheap to read. The images are read one writer at a time into arrays that
were allocated for all of them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from unpooled import _validation as validation
from unpooled.data.federated import FederatedData

PIXELS = 28 * 28
CLASSES = 62  # 0 … 9 the digits, 10 … 35 the capitals, 36 … 61 the small letters

Split = Literal["train", "test"]
Images = tuple[NDArray[np.float32], NDArray[np.int64]]  # X (n, 784), y (n,)


class Source(Protocol):
    """Images by client, split into two, that can be read one client at a time."""

    def counts(self, split: Split) -> dict[str, int]:
        """How many images each client has."""

    def images(self, split: Split, clients: Collection[str]) -> Iterator[tuple[str, Images]]:
        """The images of these clients, one client after the other in any order."""


def load_leaf(
    folder: str | os.PathLike[str],
    clients: Iterable[str] | None = None,
    classes: int = CLASSES,
    min_train: int = 1,
) -> tuple[FederatedData, FederatedData]:
    """(train, test) from LEAF's FEMNIST json: X (N, 784) float32 in [0, 1], paper white being 1; y in 0 … 61.

    ``folder`` holds ``train`` and ``test``. Of the ``clients`` (LEAF's users; None: all) and of the labels
    below ``classes`` it keeps the clients with ``min_train`` training images or more. Clients without test
    images are missing from the test, those without training images from both.

    Needs ijson (the extra "data"). Memory: X with the labels not yet left out, and one or two clients' images
    as Python numbers.
    """
    return federate(LeafFolder(Path(folder)), clients, classes, min_train)


def federate(
    source: Source, clients: Iterable[str] | None, classes: int, min_train: int
) -> tuple[FederatedData, FederatedData]:
    """`load_leaf` from any source of images."""
    if not 1 <= classes <= CLASSES:
        raise ValueError(f"classes must lie between 1 and {CLASSES}, got {classes}")
    if min_train < 1:
        raise ValueError(f"min_train must be at least 1, got {min_train}")
    counts = source.counts("train")
    if clients is not None:
        chosen = set(clients)
        unknown = sorted(chosen - counts.keys())
        if unknown:
            hint = validation.closest(unknown[0], counts)
            raise ValueError(f"there is no client {unknown[0]!r} among the {len(counts)} to train on{hint}")
        counts = {name: counts[name] for name in chosen}
    train = _gather(source, "train", counts, classes, min_train)
    tested = source.counts("test")
    tested = {name: tested[name] for name in train.ids if name in tested}
    if not tested:
        raise ValueError(
            "no client has both training and test images: split LEAF's by -t sample, not -t user"
        )
    return train, _gather(source, "test", tested, classes, 1)


def _gather(
    source: Source, split: Split, counts: Mapping[str, int], classes: int, min_rows: int
) -> FederatedData:
    """The clients' images with a label below ``classes``, in one X that is never copied."""
    names = sorted(counts)
    offsets = np.cumsum([0] + [counts[name] for name in names])
    start = dict(zip(names, offsets.tolist(), strict=False))
    X, y = np.empty((offsets[-1], PIXELS), np.float32), np.empty(offsets[-1], np.float32)
    found: dict[str, int] = {}
    for name, (x, labels) in source.images(split, counts):
        if len(labels) != counts[name]:
            wrong = f"{counts[name]} {split} images but has {len(labels)}"
            raise ValueError(f"client {name!r} is listed with {wrong}")
        keep = labels < classes
        found[name] = int(keep.sum())
        rows = slice(start[name], start[name] + found[name])
        X[rows], y[rows] = x[keep], labels[keep]
    for name in names:
        if name not in found:
            raise ValueError(f"client {name!r} is listed with {counts[name]} {split} images but has none")

    names = [name for name in names if found[name] >= min_rows]
    if not names:
        least = f"{min_rows} {split} image{'s' if min_rows > 1 else ''} with a label below {classes}"
        raise ValueError(f"none of the {len(counts)} clients has {least}")
    n_rows = 0
    for name in names:  # close the gaps that labels and clients left behind
        to, of = slice(n_rows, n_rows + found[name]), slice(start[name], start[name] + found[name])
        if to != of:
            X[to], y[to] = X[of], y[of]
        n_rows = to.stop
    X.resize((n_rows, PIXELS), refcheck=False)
    y.resize(n_rows, refcheck=False)
    return FederatedData.from_arrays(X, y, np.repeat(names, [found[name] for name in names]))


def check_images(x: Any, y: Any, where: str) -> Images:
    """Images (n, 784) in [0, 1] and their n labels in 0 … 61, or an error that says where they are not."""
    if len(x) == len(y) == 0:
        return np.empty((0, PIXELS), np.float32), np.empty(0, np.int64)
    try:
        with np.errstate(over="ignore"):
            X, labels = np.asarray(x, dtype=np.float32), np.asarray(y)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: the images are not rows of {PIXELS} numbers") from None
    if X.shape != (len(labels), PIXELS):
        raise ValueError(
            f"{where}: {len(labels)} labels need images of shape ({len(labels)}, {PIXELS}), got {X.shape}"
        )
    low, high = X.min(), X.max()
    if not (low >= 0 and high <= 1):
        raise ValueError(f"{where}: pixels must lie in [0, 1], got {low} … {high}")
    if labels.ndim != 1 or labels.dtype.kind not in "ui" or labels.min() < 0 or labels.max() >= CLASSES:
        raise ValueError(f"{where}: labels must be whole numbers from 0 to {CLASSES - 1}")
    return X, labels.astype(np.int64, copy=False)


@dataclass(frozen=True)
class LeafFolder:
    """A folder with LEAF's ``train`` and ``test``."""

    folder: Path

    def counts(self, split: Split) -> dict[str, int]:
        """The users of all files and their numbers of samples."""
        counts: dict[str, int] = {}
        for file in self._files(split):
            users, numbers = (_member(file, name) for name in ("users", "num_samples"))
            if len(users) != len(numbers) or not all(isinstance(n, int) for n in numbers):
                raise ValueError(f"{file}: num_samples must hold {len(users)} integers, one for each user")
            for name, n in zip(users, numbers, strict=True):
                if name in counts:
                    raise ValueError(
                        f"user {name!r} is in two files of {file.parent}, which LEAF never writes: "
                        "does the folder mix the files of two runs?"
                    )
                counts[name] = n
        return counts

    def images(self, split: Split, clients: Collection[str]) -> Iterator[tuple[str, Images]]:
        """The files' users one by one: the list of numbers of one user is all that is in memory."""
        ijson = _ijson()
        for file in self._files(split):
            with file.open("rb") as stream:
                users = ijson.kvitems(stream, "user_data", use_float=True)
                for name, data in _reported(users, file):
                    if name not in clients:
                        continue
                    where = f"{file}, user {name!r}"
                    if not (isinstance(data, dict) and all(isinstance(data.get(k), list) for k in "xy")):
                        raise ValueError(f'{where}: expected {{"x": [[…], …], "y": […]}}')
                    yield name, check_images(data["x"], data["y"], where)

    def _files(self, split: Split) -> list[Path]:
        files = sorted((self.folder / split).glob("all_data_*.json"))
        if not files:
            raise FileNotFoundError(f"there are no files all_data_*.json in {self.folder / split}")
        return files


def _member(file: Path, name: str) -> list[Any]:
    """One of the lists at the head of a file; reading stops there."""
    with file.open("rb") as stream:
        value = next(_reported(_ijson().items(stream, name), file), None)
    if not isinstance(value, list):
        raise ValueError(f'{file} has no list "{name}": it is not one of LEAF\'s files')
    return value


def _reported(items: Iterator[Any], file: Path) -> Iterator[Any]:
    """The parser's items, with the file named in its errors."""
    try:
        yield from items
    except _ijson().JSONError as error:
        raise ValueError(f"{file} is broken or cut short: {str(error).strip().splitlines()[0]}") from error


def _ijson() -> Any:
    try:
        import ijson
    except ImportError as error:
        raise ImportError("LEAF's json is read by ijson: pip install 'unpooled[data]' brings it") from error
    return ijson
