"""What ``unpooled study init`` asks. Each answer is checked when it is given, beside those before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from unpooled.study.config import Study, StudyError, parse
from unpooled.study.settings import MODELS

Ask = Callable[[str, str | None], str]
"""Asks a question, which may have a default; the answer."""


def names(text: str) -> list[str]:
    """Names between commas; where nothing stands between two, that is complained about later."""
    return [part.strip() for part in text.split(",")] if text.strip() else []


def columns(text: str) -> str | list[str]:
    """Names of columns, or "all"."""
    return "all" if text.strip() == "all" else names(text)


def agreed(text: str) -> dict[str, str]:
    """Categorical columns whose levels the sites agree on."""
    return dict.fromkeys(names(text), "agree")


def number(text: str) -> Any:
    """A number where the text is one; else the text, which is then checked as any other."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class Question(NamedTuple):
    """A question: the key that it is about, its words, the answer that Enter gives, how one is read."""

    section: str
    name: str
    words: str
    default: str | None
    read: Callable[[str], Any] = str

    def within(self, given: Mapping[str, Any], answer: str) -> dict[str, Any]:
        """The tables of a study's file with the answer in its place."""
        if not self.section:
            return {**given, self.name: self.read(answer)}
        return {**given, self.section: {**given.get(self.section, {}), self.name: self.read(answer)}}


QUESTIONS = (
    Question("", "name", "Name of the study", "study"),
    Question("", "sites", "Ids of the sites (separated by commas)", None, names),
    Question("", "address", "Address at which sites reach you (host:port)", "127.0.0.1:9092"),
    Question("data", "target", "Target (the column to be explained)", None),
    Question("data", "features", "Features (separated by commas)", None, columns),
    Question("data", "categorical", "Categorical columns among them (separated by commas)", "", agreed),
    Question("data", "missing", "Missing numbers (refuse, mean)", "refuse"),
    Question("model", "kind", f"Model ({', '.join(MODELS)})", "lasso"),
    Question("model", "lambda", "λ (a number, path, cv)", "cv", number),
    Question("limits", "minimum_rows", "Rows that a site must have", "10", number),
)
LATER: dict[str, Any] = {  # stands for what is not answered yet
    "name": "study",
    "sites": ["site"],
    "data": {"target": "(target)", "features": "all"},
    "model": {"kind": "lasso"},
}


def answered(
    options: Mapping[str, Any],
    ask: Ask | None,
    complain: Callable[[str], None],
    found: Callable[[str], list[str]] | None = None,
) -> Study:
    """The study of all answers: ``options`` by name of the key, None for those to be asked.

    A wrong answer is complained about and asked for again, a wrong option ends it. Without ``ask``, defaults
    are taken. ``found`` has the columns of a table beside its target, which are then the default of the
    features, and all of them.
    """
    given: dict[str, Any] = {}
    study: Study | None = None
    for question in QUESTIONS:
        option = options[question.name]
        if question.name == "features" and found is not None:
            everything = ", ".join(found(given["data"]["target"]))
            question, option = (
                question._replace(default=everything),
                everything if option == "all" else option,
            )
        while True:
            answer = _answer(question, option, ask)
            trial = question.within(given, answer)
            try:
                study = parse(_whole(trial))
                break
            except StudyError as error:
                if option is not None or ask is None:
                    raise
                complain(str(error))
        given = trial
    assert study is not None
    return study


def _answer(question: Question, option: Any, ask: Ask | None) -> str:
    if option is not None:
        return str(option)
    if ask is not None:
        return ask(question.words, question.default)
    if question.default is None:
        words = question.words.split(" (")[0]
        raise StudyError(f"{words}: --yes has no default for it, give it as an option")
    return question.default


def _whole(given: Mapping[str, Any]) -> dict[str, Any]:
    whole = {**LATER, **given}
    for section in ("data", "model"):
        whole[section] = {**LATER[section], **given.get(section, {})}
    return whole
