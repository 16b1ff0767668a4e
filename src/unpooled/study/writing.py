"""``study.toml`` as text, with a comment beside each key."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unpooled._files import whole_file
from unpooled.study.config import Study, needed
from unpooled.study.csv_file import CsvOptions
from unpooled.study.settings import FEDERATED, KEYS, SECTIONS, Key

HEAD = """\
# A study across sites. The coordinator and every site have the same copy of this file;
# only the address, the results folder, data.csv and the times to wait may differ between copies.
"""
WIDTH = 110
ABOUT = {
    "data": "# Every site's table has the target and the features, as columns of the same names and types.",
    "model": "# The coefficients that come out are for the columns as they are, in their own units.",
    "solver": "",
    "limits": "",
}


def text(study: Study) -> str:
    """The file; keys that do not concern this study are left out."""
    lines = [HEAD]
    for section in SECTIONS:
        if section:
            lines += ["", f"[{section}]"] + ([ABOUT[section]] if ABOUT[section] else [])
        for key in KEYS:
            if key.section == section and _concerns(key, study):
                entry = f"{key.name} = {_literal(getattr(study, key.field))}"
                beside = f"{entry:<34} # {key.comment}"
                lines += [beside] if len(beside) <= WIDTH else [f"# {key.comment}", entry]
    return "\n".join(lines) + "\n"


def write(study: Study, path: str | os.PathLike[str]) -> Path:
    """Write the file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(text(study).encode())
    return path


def _concerns(key: Key, study: Study) -> bool:
    questions, requests = needed(vars(study))
    of_models = {
        "csv": bool(study.csv.plain()),
        "l1_ratio": study.model not in ("lasso", "group lasso"),
        "delta": study.model == "huber",
        "groups": study.model == "group lasso",
        "unpenalised": study.model != "group lasso",
        "n_lambdas": isinstance(study.lam, str),
        "ratio": isinstance(study.lam, str),
        "criterion": study.lam == "path",
        "folds": study.lam == "cv",
        "rule": study.lam == "cv",
        "tolerance": study.solver not in FEDERATED,
        "max_rounds": study.solver not in FEDERATED,
        "rounds": study.solver in FEDERATED,
        "local_steps": study.solver in FEDERATED,
        "batch_size": study.solver in FEDERATED,
        "aggregate": study.solver in FEDERATED,
        "norm_bound": study.solver in FEDERATED,
        "max_questions": study.max_questions != questions,
        "max_requests": study.max_requests != requests,
    }
    return of_models.get(key.field, True)


def _literal(value: Any) -> str:
    if isinstance(value, CsvOptions):
        value = value.plain()
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_name(name)} = {_literal(each)}" for name, each in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_literal(each) for each in value) + "]"
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e6 else repr(value)
    return json.dumps(value, ensure_ascii=False)  # texts, whole numbers, true and false are the same there


def _name(name: str) -> str:
    is_bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if is_bare else json.dumps(name, ensure_ascii=False)
