"""Descriptions of tables as they come from sites: in the form that this version knows, or refused by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, get_args, get_origin, get_type_hints

from unpooled._version import versions
from unpooled._wording import printable
from unpooled.engines.remote.messages import Reply
from unpooled.engines.remote.replies import MOST_ROWS, checked
from unpooled.study.description import Description

MOST_LETTERS = 1000  # of a name or a level
KNOWN = {each.name: each for each in fields(Description)}


def described(replies: Mapping[str, Reply]) -> list[Description]:
    """The sites' descriptions; a ``BadReplyError`` names the sites whose descriptions are none."""
    sound = checked(replies, {site: site for site in replies}, _complaint)
    found = [Description(**reply.spec) for reply in sound.values()]
    return [replace(each, unfit=[printable(said) for said in each.unfit]) for each in found]


def version_of(told: Any) -> str:
    """``unpooled 0.2``, as a site tells it."""
    found = told.get("versions") if isinstance(told, Mapping) else None
    version = found.get("unpooled") if isinstance(found, Mapping) else None
    return f"unpooled {version}" if isinstance(version, str) else "an unknown version"


def _complaint(reply: Reply, site: str) -> str | None:
    mine, hints = f"unpooled {versions()['unpooled']}", get_type_hints(Description)
    unknown = sorted(reply.spec.keys() - KNOWN.keys())
    if unknown:
        return (
            f"it describes {unknown[0]!r}, which {mine} does not know; it runs {version_of(reply.spec)}: "
            "install the same version everywhere"
        )
    for name, field in KNOWN.items():
        if name not in reply.spec:
            if field.default is MISSING and field.default_factory is MISSING:
                return f"its description has no {name}; it runs {version_of(reply.spec)}, this is {mine}"
            continue
        told = reply.spec[name]
        if not _fits(told, hints[name]) or (name == "site" and told != site):
            return f"its {name} cannot be {told!r:.100}"
    rows = reply.spec["rows"]
    return None if 0 < rows <= MOST_ROWS else f"its rows cannot be {rows!r}"


def _fits(told: Any, hint: Any) -> bool:
    """Whether plain data are of the type that a field of ``Description`` has; ``Any`` is a level."""
    if get_origin(hint) is list:
        return isinstance(told, list) and all(_fits(each, get_args(hint)[0]) for each in told)
    if get_origin(hint) is dict:
        key, value = get_args(hint)
        return isinstance(told, dict) and all(_fits(k, key) and _fits(v, value) for k, v in told.items())
    if isinstance(told, str) and hint in (str, Any):
        return len(told) <= MOST_LETTERS
    if hint is Any:
        return isinstance(told, int | float) and math.isfinite(told)
    return type(told) is hint
