"""The paper's EMNIST-10 and EMNIST-62: a tenth of the writers of federated EMNIST."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from unpooled.data.datasets.leaf import LeafFolder, Source, federate
from unpooled.data.datasets.tff import TffFiles
from unpooled.data.federated import FederatedData

DIGITS_ONLY, ALL = "fed_emnist_digitsonly", "fed_emnist"

HELP = """{problem}

The data is to be had in two forms:

1. LEAF (https://leaf.cmu.edu), as in the paper:
     git clone https://github.com/TalwalkarLab/leaf
     cd leaf/data/femnist
     ./preprocess.sh -s niid --sf 1.0 -k 0 -t sample
   The path to give is then leaf/data/femnist/data, which holds
     train/all_data_0_niid_0_keep_0_train_9.json, train/all_data_1_…
     test/all_data_0_niid_0_keep_0_test_9.json, test/all_data_1_…

2. TensorFlow Federated: tff.simulation.datasets.emnist.load_data(only_digits=False) of an early release
   caches the files in ~/.keras/datasets (later ones cache emnist_all.sqlite, which is not read here);
   https://storage.googleapis.com/tff-datasets-public/fed_emnist.tar.bz2 has them too.
   The path to give is a folder that holds
     fed_emnist_train.h5 and fed_emnist_test.h5, or, for classes=10 only,
     fed_emnist_digitsonly_train.h5 and fed_emnist_digitsonly_test.h5"""


def femnist(
    path: str | os.PathLike[str],
    classes: int = 10,
    min_train: int = 10,
    fraction: float = 0.1,
    seed: int = 0,
) -> tuple[FederatedData, FederatedData]:
    """(train, test) of the paper's EMNIST-10 (digits) or EMNIST-62 (``classes=62``): X (N, 784) float32.

    ``path`` is a folder with LEAF's ``train`` and ``test``, or else with TFF's fed_emnist*.h5. First
    round(fraction·K) of the K training clients are drawn, then labels ≥ ``classes`` are dropped, and last the
    clients with fewer than ``min_train`` training images.

    The paper speaks of 10 % of the samples. Its 367 and 379 clients, with as many images each as the 3500 of
    the whole, are 10 % of the clients, which is also how LEAF samples; which ones is not known. Here a client
    is drawn by a hash of the seed and its name: whatever the order of the files, a smaller fraction is part
    of a larger one, and the writers of EMNIST-10 are among those of EMNIST-62.
    """
    if classes not in (10, 62):
        raise ValueError(f"classes must be 10 or 62, got {classes}")
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must lie above 0 and not above 1, got {fraction}")
    source = _source(Path(path), classes)
    clients = _draw(source.counts("train"), fraction, seed)
    return federate(source, clients, classes, min_train)


def _source(path: Path, classes: int) -> Source:
    """LEAF's files or TFF's, whichever are there; LEAF's if both are."""
    if not path.is_dir():
        raise FileNotFoundError(HELP.format(problem=f"There is no folder {path}."))
    halves = [any((path / split).glob("all_data_*.json")) for split in ("train", "test")]
    if all(halves):
        return LeafFolder(path)
    if any(halves):
        there, missing = ("train", "test") if halves[0] else ("test", "train")
        problem = f"{path} has {there}/all_data_*.json but no {missing}/all_data_*.json."
        raise FileNotFoundError(HELP.format(problem=problem))
    for stem in (DIGITS_ONLY, ALL) if classes == 10 else (ALL,):
        files = TffFiles(path / f"{stem}_train.h5", path / f"{stem}_test.h5")
        if files.train.is_file() and files.test.is_file():
            return files
    found = ", ".join(sorted(file.name for file in path.glob("fed_emnist*.h5")))
    problem = f"{path} has neither LEAF's FEMNIST nor TFF's federated EMNIST of {classes} classes"
    raise FileNotFoundError(HELP.format(problem=problem + (f", only {found}." if found else ".")))


def _draw(names: Iterable[str], fraction: float, seed: int) -> list[str]:
    """The clients first in the order of their hashes."""
    order = sorted(names, key=lambda name: (blake2b(f"{seed} {name}".encode()).digest(), name))
    return order[: max(1, round(fraction * len(order)))]
