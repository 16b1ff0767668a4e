"""Replies that came from elsewhere: held against what was asked before anything is made of them.

Whoever asks gives the rule of the answer; ``checked`` applies it to every reply, in one place. A reply that
breaks it is the fault of the one who sent it, who is named, and of nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from unpooled._wording import printable
from unpooled.engines.remote.failures import BadReplyError
from unpooled.engines.remote.messages import Holder, Reply
from unpooled.exact.expected import Rule, complaint
from unpooled.kernels.arrays import Array, Arrays

Own = TypeVar("Own")
Check = Callable[[Reply, Array], str | None]
"""What is wrong with a reply of the holder of these positions, in words that follow the holder's name."""

MOST_ROWS = 2**53  # whole numbers up to here are exact as floats
DESCRIPTION: dict[str, Callable[[Any], bool]] = {
    "ids": lambda told: isinstance(told, list) and all(type(each) in (str, int) for each in told),
    "row_shape": lambda told: isinstance(told, list) and all(type(n) is int and n > 0 for n in told),
    "dtype": lambda told: told in ("float32", "float64"),
    "is_sparse": lambda told: isinstance(told, bool),
    "is_weighted": lambda told: isinstance(told, bool),
    "is_mapped": lambda told: isinstance(told, bool),
    "has_missing": lambda told: isinstance(told, bool),
    "feature_names": lambda told: told is None or is_texts(told),
    "digest": lambda told: isinstance(told, str),
}


def checked(
    replies: Mapping[Holder, Reply], own: Mapping[Holder, Own], check: Callable[[Reply, Own], str | None]
) -> dict[Holder, Reply]:
    """The replies, if all are sound; otherwise a ``BadReplyError`` with a sentence for each that is not.

    ``check`` is given a reply and what is each holder's ``own``, such as the positions of its clients.
    """
    wrong: dict[Holder, str] = {}
    for holder, reply in replies.items():
        try:
            said = check(Reply(reply.spec, _arrays(reply.arrays)), own[holder])
        except Exception as error:  # whatever a rule did not foresee is still one holder's fault
            said = f"its answer cannot be read ({type(error).__name__}: {error})"
        if said:
            wrong[holder] = printable(said)
    if wrong:
        raise BadReplyError(wrong)
    return dict(replies)


def described(reply: Reply, positions: Array) -> str | None:
    """Whether a holder says in the right form who its clients are."""
    unknown = sorted(reply.spec.keys() - DESCRIPTION.keys())
    if unknown:
        return f"it described {unknown[0]!r}, which this version of unpooled does not know"
    for name, fits in DESCRIPTION.items():
        if name not in reply.spec or not fits(reply.spec[name]):
            return f"its {name} cannot be {reply.spec.get(name)!r:.100}"
    n = len(reply.spec["ids"])
    if not n or len(set(reply.spec["ids"])) < n:
        return "it has no client, or one twice"
    rules = {"sizes": Rule((n,), 1, MOST_ROWS, is_count=True), "totals": Rule((n,), 0.0)}
    return complaint(reply.arrays, rules)


def bound(reply: Reply, positions: Array) -> str | None:
    """Whether a holder says how many outputs its targets have, and what is wrong with them."""
    outputs = reply.spec.get("outputs")
    if not (outputs is None or (type(outputs) is int and outputs > 0)):
        return f"its number of outputs cannot be {outputs!r:.100}"
    return None if is_texts(reply.spec.get("complaints")) else "its complaints are no texts"


def one_each(rules: Mapping[str, Rule]) -> Check:
    """The check of arrays that have a row of a rule's shape for each of the holder's clients."""

    def check(reply: Reply, positions: Array) -> str | None:
        n = len(positions)
        return complaint(
            reply.arrays, {k: rule._replace(shape=(n, *rule.shape)) for k, rule in rules.items()}
        )

    return check


def by_position(arrays: Arrays, positions: Array) -> dict[int, Arrays] | str:
    """Arrays under ``position/name`` by position, all of them the holder's own; or what is wrong."""
    own = set(positions.tolist())
    found: dict[int, Arrays] = {}
    for name, array in arrays.items():
        k, slash, kind = name.partition("/")
        if not slash or not k.isdecimal() or str(int(k)) != k or int(k) not in own:
            return f"it answered {name!r:.100}, which it was not asked"
        found.setdefault(int(k), {})[kind] = array
    return found


def is_texts(told: Any) -> bool:
    """Whether something is a list of texts."""
    return isinstance(told, list) and all(isinstance(each, str) for each in told)


def _arrays(arrays: Mapping[str, Any]) -> Arrays:
    return {name: np.asarray(array) for name, array in arrays.items()}
