"""The federated EMNIST of TensorFlow Federated: LEAF's images in two HDF5 files.

A file holds ``examples/<client>/pixels`` (n, 28, 28) and ``examples/<client>/label`` (n,).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unpooled.data.datasets.leaf import CLASSES, Images, Split, check_images, federate
from unpooled.data.federated import FederatedData


def load_tff(
    train_h5: str | os.PathLike[str],
    test_h5: str | os.PathLike[str],
    clients: Iterable[str] | None = None,
    classes: int = CLASSES,
    min_train: int = 1,
) -> tuple[FederatedData, FederatedData]:
    """(train, test) from TFF's fed_emnist_train.h5 and …_test.h5, or from the digitsonly ones of 10 classes.

    X, y, the other arguments and the clients kept are those of `load_leaf`. Needs h5py (the extra "data").
    """
    return federate(TffFiles(Path(train_h5), Path(test_h5)), clients, classes, min_train)


@dataclass(frozen=True)
class TffFiles:
    """A pair of HDF5 files."""

    train: Path
    test: Path

    def counts(self, split: Split) -> dict[str, int]:
        """The clients and their numbers of labels."""
        with self._examples(split) as examples:
            return {name: _dataset(examples, name, "label").size for name in examples}

    def images(self, split: Split, clients: Collection[str]) -> Iterator[tuple[str, Images]]:
        """The clients one by one."""
        with self._examples(split) as examples:
            for name in sorted(examples.keys() & set(clients)):
                pixels = _dataset(examples, name, "pixels").astype("float32")[()]
                label = _dataset(examples, name, "label")[()].ravel()
                where = f"{getattr(self, split)}, client {name!r}"
                yield name, check_images(pixels.reshape(len(pixels), -1), label, where)

    @contextmanager
    def _examples(self, split: Split) -> Iterator[Any]:
        try:
            import h5py
        except ImportError as error:
            raise ImportError("TFF's h5 is read by h5py: pip install 'unpooled[data]' brings it") from error
        path: Path = getattr(self, split)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        if not h5py.is_hdf5(path):
            raise ValueError(f"{path} is not an HDF5 file, or is broken")
        with h5py.File(path, "r") as file:
            if "examples" not in file:
                raise ValueError(f"{path} has no group 'examples': it is not one of TFF's files")
            yield file["examples"]


def _dataset(examples: Any, client: str, name: str) -> Any:
    if name not in examples[client]:
        raise ValueError(f"{examples.file.filename}, client {client!r} has no {name!r}")
    return examples[client][name]
