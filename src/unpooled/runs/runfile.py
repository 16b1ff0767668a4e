"""Runs on disk: one zip file of NumPy arrays and a JSON description, versioned, written atomically."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from unpooled._files import DAMAGE, MOST_BYTES, check_size, read_array, whole_file
from unpooled._ledger import Ledger
from unpooled.aggregation.privacy.spent import Spent
from unpooled.algorithms.base import State
from unpooled.exact.certificate import Certificate
from unpooled.runs.run import Best, Run, Status

FORMAT = 1


def save(run: Run, path: str | os.PathLike[str]) -> Path:
    """Write a run, whole or not at all."""
    path = Path(path)
    description = {
        "format": FORMAT,
        "status": str(run.status),
        "message": run.message,
        "ledger": asdict(run.ledger),
        "settings": run.settings,
        "notes": run.notes,
        "versions": run.versions,
        "seed": run.seed,
        "seconds": run.seconds,
        "round": run.state.round,
        "privacy": None if run.privacy is None else asdict(run.privacy),
        "best": None if run.best is None else {"round": run.best.round, "objective": run.best.objective},
        "certificate": None if run.certificate is None else asdict(run.certificate),
        "findings": run.findings,
    }
    arrays = {"memory": run.memory, **_model("", run)}
    if run.best is not None:
        arrays |= _model("best/", run.best)
    arrays |= {f"history/{name}": column for name, column in run.history.items()}
    arrays |= {f"state/{name}": vector for name, vector in run.state.arrays.items()}
    description["arrays"] = sorted(arrays)
    with (
        whole_file(path) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        archive.writestr("run.json", json.dumps(description, indent=1))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    return path


def _model(folder: str, of: Run | Best) -> dict[str, Any]:
    arrays = {f"{folder}w": of.w}
    return arrays if of.intercept is None else {**arrays, f"{folder}intercept": np.asarray(of.intercept)}


def load(path: str | os.PathLike[str], *, most_bytes: int = MOST_BYTES) -> Run:
    """Read a run that ``Run.save`` wrote. A damaged or foreign file is refused with a ValueError.

    So is one that would unpack to more than ``most_bytes``, before it is unpacked.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no run at {path}")
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                check_size(archive, most_bytes)
                description = json.loads(archive.read("run.json"))
                if description["format"] <= FORMAT:
                    return _assemble(description, _arrays(archive, description))
            newer = description["versions"].get("unpooled", "a newer version")
        except DAMAGE as error:
            raise ValueError(f"{path} is not a run saved by unpooled, or it is damaged ({error})") from error
    raise ValueError(f"{path} was written by unpooled {newer}, which this version cannot read")


def _arrays(archive: zipfile.ZipFile, description: dict[str, Any]) -> dict[str, Any]:
    """All arrays, which must be those that the description names."""
    arrays = {}
    for name in archive.namelist():
        if name.endswith(".npy"):
            arrays[name[:-4]] = read_array(archive, name)
    expected = description.get("arrays", sorted(arrays))  # the first files did not name them
    if sorted(arrays) != expected:
        raise ValueError(f"its arrays should be {', '.join(expected)}")
    return arrays


def _assemble(description: dict[str, Any], arrays: dict[str, Any]) -> Run:
    def under(folder: str) -> dict[str, Any]:
        return {name.removeprefix(folder): a for name, a in arrays.items() if name.startswith(folder)}

    def intercept(folder: str) -> Any:
        found = arrays.get(f"{folder}intercept")
        return float(found) if found is not None and found.ndim == 0 else found

    best, certificate = description.get("best"), description.get("certificate")  # unknown to older files
    return Run(
        w=arrays["w"],
        intercept=intercept(""),
        status=Status(description["status"]),
        message=description["message"],
        history=under("history/"),
        ledger=Ledger(**description["ledger"]),
        settings=description["settings"],
        notes=description["notes"],
        versions=description["versions"],
        seed=description["seed"],
        seconds=description["seconds"],
        state=State(description["round"], under("state/")),
        memory=arrays["memory"],
        privacy=None if description.get("privacy") is None else Spent(**description["privacy"]),
        best=None if best is None else Best(**best, w=arrays["best/w"], intercept=intercept("best/")),
        certificate=None if certificate is None else Certificate(**certificate),
        findings=description.get("findings", []),
    )
