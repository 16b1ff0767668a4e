"""What a value in ``study.toml`` may be: each check returns the value, or complains in words about it."""

from __future__ import annotations

import codecs
import ipaddress
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from unpooled._validation import closest, is_number
from unpooled._wording import printable
from unpooled.study.csv_file import CsvOptions

Check = Callable[[Any], Any]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")  # between two dots of a host's name


class Wrong(Exception):  # noqa: N818  # a complaint that gets the key's name in front of it
    """What a value should have been."""


def text(value: Any) -> str:
    """Some words."""
    if not isinstance(value, str) or not value.strip():
        raise Wrong(f'must be a text such as "age", got {value!r}')
    _refuse_controls(value)
    return value


def word(*known: str) -> Check:
    """One of a few words."""

    def check(value: Any) -> str:
        if value not in known or not isinstance(value, str):
            listed = ", ".join(f'"{each}"' for each in known)
            raise Wrong(f"must be one of {listed}, got {value!r}{closest(value, known)}")
        return value

    return check


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise Wrong(f"must be true or false, got {value!r}")
    return value


def whole(least: int) -> Check:
    """A whole number that is not too small."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise Wrong(f"must be a whole number ≥ {least}, got {value!r}")
        return value

    return check


def number(least: float, most: float = math.inf, *, above: bool = False) -> Check:
    """A number between two; ``above``: larger than the lower one."""

    def check(value: Any) -> float:
        fits = is_number(value) and math.isfinite(value) and (least < value if above else least <= value)
        if not fits or value > most:
            lower = f"> {least:g}" if above else f"≥ {least:g}"
            upper = "" if math.isinf(most) else f" and ≤ {most:g}"
            raise Wrong(f"must be a number {lower}{upper}, got {value!r}")
        return float(value)

    return check


def either(first: Check, second: Check) -> Check:
    """What one of two checks accepts; the complaint has both."""

    def check(value: Any) -> Any:
        try:
            return first(value)
        except Wrong as one:
            try:
                return second(value)
            except Wrong as other:
                said = str(one).removeprefix("must be ").split(", got ")[0]
                raise Wrong(f"{str(other).split(', got ')[0]}, or {said}, got {value!r}") from None

    return check


def names(value: Any) -> tuple[str, ...]:
    """A list of different texts; it may be empty."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) and each for each in value):
        raise Wrong(f'must be a list of names such as ["age", "sex"], got {value!r}')
    twice = sorted({each for each in value if list(value).count(each) > 1})
    if twice:
        raise Wrong(f"names {twice[0]!r} twice")
    for each in value:
        _refuse_controls(each)
    return tuple(value)


def _refuse_controls(value: str) -> None:
    """Names stand on everybody's terminals."""
    if printable(value) != value:
        raise Wrong(f"has a control character in {value!r}")


def site_ids(value: Any) -> tuple[str, ...]:
    """Ids of sites, which become names of folders and files."""
    given = names(value)
    if not given:
        raise Wrong('must name the sites, such as ["basel", "bern"]')
    for each in given:
        if not NAME.fullmatch(each):
            raise Wrong(f"has {each!r}: a site's id is made of letters, digits, '-', '_' and '.'")
    return tuple(sorted(given))


def features(value: Any) -> str | tuple[str, ...]:
    """Names of columns, or "all"."""
    if value == "all":
        return "all"
    if isinstance(value, str) or not value:
        raise Wrong(f'must be "all" or a list of columns such as ["age", "ldl"], got {value!r}')
    return names(value)


def categorical(value: Any) -> dict[str, str | tuple[Any, ...]]:
    """For each categorical column "agree" or its levels."""
    if not isinstance(value, dict):
        raise Wrong(f'must be a table such as {{ smoker = "agree", sex = ["f", "m"] }}, got {value!r}')
    found: dict[str, str | tuple[Any, ...]] = {}
    for column, levels in value.items():
        if levels == "agree":
            found[column] = "agree"
            continue
        kinds = {type(level) for level in levels} if isinstance(levels, Sequence) else set[type]()
        if isinstance(levels, str) or kinds not in ({str}, {int}) or len(set(levels)) != len(levels):
            raise Wrong(
                f'has {column!r} = {levels!r}: it must be "agree" or different levels, all texts or all '
                'whole numbers, such as ["f", "m"]'
            )
        found[column] = tuple(levels)
    return found


def groups(value: Any) -> dict[str, tuple[str, ...]]:
    """Groups of columns by name; no column in two."""
    if not isinstance(value, dict):
        raise Wrong(f'must be a table such as {{ lipids = ["ldl", "hdl"] }}, got {value!r}')
    found = {name: names(columns) for name, columns in value.items()}
    seen: dict[str, str] = {}
    for name, columns in found.items():
        for column in columns:
            if column in seen:
                raise Wrong(f"has {column!r} in {seen[column]!r} and in {name!r}: a column has one group")
            seen[column] = name
    return found


def csv(value: Any) -> CsvOptions:
    """How a CSV file is written."""
    known = [each.name for each in fields(CsvOptions)]
    if not isinstance(value, dict):
        raise Wrong(f'must be a table such as {{ separator = ";", decimal = "," }}, got {value!r}')
    for name in value:
        if name not in known:
            raise Wrong(f"has {name!r}, but {name!r} is none of {', '.join(known)}{closest(name, known)}")
    separator, decimal = value.get("separator"), value.get("decimal", ".")
    if separator is not None and (not isinstance(separator, str) or len(separator) != 1):
        raise Wrong(f'has a separator {separator!r}: separator must be one character, such as ";"')
    if decimal not in (".", ","):
        raise Wrong(f'has a decimal {decimal!r}: decimal must be one of "." and ","')
    if separator == decimal:
        raise Wrong(f"has a separator and a decimal that cannot both be {decimal!r}")
    encoding = value.get("encoding", "utf-8")
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise Wrong(f"has an encoding that is not known: there is no encoding {encoding!r}") from None
    lists = {name: _texts(name, value[name]) for name in ("missing", "text") if name in value}
    return CsvOptions(**{**value, **lists})


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise Wrong(f'has {name} = {value!r}: it must be a list of texts such as ["NA", ""]')
    return tuple(value)


def address(value: Any) -> str:
    """A host and a port; ``https://host:port`` is understood, and a name in another script spelt in ASCII."""
    given = value.strip() if isinstance(value, str) else ""
    scheme, slashes, rest = given.partition("://")
    if slashes and scheme.lower() not in ("https", "grpcs"):
        raise Wrong(f'must be a host and a port such as "study.org:9092", without {scheme}://, got {value!r}')
    name, colon, port = (rest.removesuffix("/") if slashes else given).rpartition(":")
    if not colon or not name or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise Wrong(f'must be a host and a port such as "study.hospital.org:9092", got {value!r}')
    return f"{host(name)}:{port}"


def host(value: str) -> str:
    """The name or address of a machine, in ASCII: ``zürich.example`` becomes ``xn--zrich-kva.example``."""
    try:
        ipaddress.ip_address(value.removeprefix("[").removesuffix("]"))
        return value
    except ValueError:
        pass
    try:
        ascii_name = value.encode("idna").decode()
    except UnicodeError:
        ascii_name = ""
    labels = ascii_name.split(".")
    if not all(LABEL.fullmatch(each) for each in labels) or labels[-1].isdigit():
        raise Wrong(f"has {value!r}, which is no name or address of a machine")
    return ascii_name
