"""What all sites agree on before anything is computed: columns, levels, classes; or who differs, in what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from unpooled._validation import listing
from unpooled._wording import counted
from unpooled.preprocessing.levels import OTHER, Categories
from unpooled.study.config import Study, StudyError
from unpooled.study.description import NUMBERS, Description
from unpooled.study.rare import deals_rows, in_folds, without_folds


@dataclass(frozen=True)
class Agreement:
    """The ``features`` in order, the levels of categorical ones, and the ``classes`` of the target."""

    features: tuple[str, ...]
    categories: tuple[Categories, ...]
    classes: tuple[Any, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of X, a name for each dummy."""
        of = {each.name: each.feature_names for each in self.categories}
        return tuple(name for feature in self.features for name in of.get(feature, (feature,)))

    @property
    def columns(self) -> tuple[str, ...]:
        """For each column of X the feature that it comes from."""
        of = {each.name: each.feature_names for each in self.categories}
        return tuple(feature for feature in self.features for _ in of.get(feature, (feature,)))

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_plain(cls, given: Mapping[str, Any]) -> Agreement:
        """Read it back."""
        categories = [Categories(**{**each, "levels": tuple(each["levels"])}) for each in given["categories"]]
        return cls(tuple(given["features"]), tuple(categories), tuple(given["classes"]))


class DisagreementError(StudyError):
    """Sites that do not fit the study or the others; ``by_site`` has every site's list of what differs."""

    def __init__(self, by_site: Mapping[str, list[str]]):
        self.by_site = dict(by_site)
        said = [f"{site}: {reason}" for site, reasons in self.by_site.items() for reason in reasons]
        super().__init__("the sites do not agree:\n  " + "\n  ".join(said))


def agree(study: Study, sites: Sequence[Description]) -> Agreement:
    """What the sites agree on; a ``DisagreementError`` names all who differ from the study or from most."""
    differ: dict[str, list[str]] = {each.site: list(each.unfit) for each in sites}
    rare = {name for each in sites for name in each.left_out}
    features = tuple(name for name in _features(study, sites, differ) if name not in rare)
    for name in features:
        _kinds(name, sites, differ)
    differ = {site: reasons for site, reasons in differ.items() if reasons}
    if differ:
        raise DisagreementError(differ)
    if not features:
        raise StudyError(
            f"no column is left: in each, fewer than limits.minimum_rows = {study.minimum_rows} rows of some "
            f"site{in_folds(study)} stand out"
        )
    categories = tuple(_levels(study, name, sites) for name in features if name in study.categorical)
    return Agreement(features, categories, _classes(study, sites))


def notes(agreement: Agreement, study: Study, sites: Sequence[Description] = ()) -> list[str]:
    """What was agreed on, in words; of rare values also at which sites."""
    said, least, folds = [], study.minimum_rows, in_folds(study)
    keeps = without_folds(f"those of {least} rows or more")
    remedy = f" {keeps[0].upper()}{keeps[1:]}." if deals_rows(study) else ""
    for each in agreement.categories:
        other = f", and 'other' for levels of fewer than {least} rows{folds}" if each.has_other else ""
        said.append(
            f"{each.name}: {counted(len(each.levels), 'level')}{other}, reference {each.reference!r}."
        )
        where = [site.site for site in sites if each.name in site.merged]
        if where:
            said.append(
                f"{each.name}: rows of levels that fewer than {least} have{folds} count as the most common "
                f"level of their site, at {', '.join(where)}.{remedy}"
            )
    for name in dict.fromkeys(name for site in sites for name in site.left_out):
        where = [site.site for site in sites if name in site.left_out]
        said.append(
            f"{name} was left out: fewer than {least} rows{folds} stand out in it at {', '.join(where)}."
        )
    if agreement.classes:
        said.append(f"{study.target}: the classes are {listing(agreement.classes)}.")
    return said


def _features(study: Study, sites: Sequence[Description], differ: dict[str, list[str]]) -> tuple[str, ...]:
    """The features; where they are "all", those that most sites have in common."""
    if study.features != "all":
        return tuple(study.features)
    own = {each.site: [name for name in each.kinds if name != study.target] for each in sites}
    common = Counter(frozenset(names) for names in own.values()).most_common(1)[0][0]
    for site, names in own.items():
        lacks, more = sorted(common - set(names)), sorted(set(names) - common)
        others = ", ".join(other for other in own if other != site)
        if lacks:
            differ[site].append(f"it has no column {listing(lacks)}, as {others} do")
        if more:
            differ[site].append(f"it has the column {listing(more)}, which the others do not have")
    return tuple(next(names for names in own.values() if set(names) == common))


def _kinds(name: str, sites: Sequence[Description], differ: dict[str, list[str]]) -> None:
    """Texts at some sites and numbers at others are not the same column."""
    alike = {each.site: _sort(each.kinds[name]) for each in sites if name in each.kinds}
    if len(set(alike.values())) < 2:
        return
    common = Counter(alike.values()).most_common(1)[0][0]
    for site, kind in alike.items():
        if kind != common:
            others = ", ".join(other for other in alike if alike[other] == common)
            differ[site].append(f"column {name!r} holds {kind}, but {common} at {others}")


def _sort(kind: str) -> str:
    return "numbers" if kind in NUMBERS else kind


def _levels(study: Study, name: str, sites: Sequence[Description]) -> Categories:
    given = study.categorical[name]
    if not isinstance(given, str):
        return Categories(name, tuple(given), given[0], False)
    union = {level for each in sites for level in each.levels.get(name, [])}
    has_other = any(name in each.rare for each in sites)
    if not union:
        raise StudyError(
            f"column {name!r}: no site has a level of {study.minimum_rows} rows"
            f"{' that has enough in each fold' if deals_rows(study) else ''}, so none is named"
        )
    if has_other and OTHER in union:
        raise StudyError(f"column {name!r} has a level {OTHER!r} of its own beside rare ones: rename it")
    levels = tuple(sorted(union))
    return Categories(name, levels, levels[0], has_other)


def _classes(study: Study, sites: Sequence[Description]) -> tuple[Any, ...]:
    if not study.is_classifier:
        return ()
    differ: dict[str, list[str]] = {each.site: [] for each in sites}
    _kinds(study.target, sites, differ)
    differ = {site: reasons for site, reasons in differ.items() if reasons}
    if differ:
        raise DisagreementError(differ)
    classes = tuple(sorted({label for each in sites for label in each.classes}))
    if study.model == "logistic" and len(classes) != 2:
        own = "; ".join(f"{each.site} has {listing(each.classes)}" for each in sites)
        raise StudyError(
            f"logistic needs two classes of {study.target!r}, the sites have {len(classes)}: {own}"
        )
    if study.model == "multinomial" and len(classes) < 3:
        raise StudyError(
            f"multinomial needs three classes or more, the sites have {listing(classes)}: logistic"
        )
    return classes
