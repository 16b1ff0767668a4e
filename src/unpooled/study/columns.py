"""The columns of a site's table that a study would use, and those that look as if they named a person."""

from __future__ import annotations

import re

from unpooled.study.config import Study
from unpooled.study.description import LABELS, concerned
from unpooled.study.table import Table

WORDS = {"id", "ids", "uid", "uuid", "guid", "pid", "mrn", "ssn", "ahv", "nhs", "identifier", "identity"}
WORDS |= {"patientid", "caseid", "recordid", "name", "surname", "firstname", "lastname", "fullname"}
WORDS |= {"email", "mail", "phone", "mobile", "telephone", "address", "street", "zip", "postcode", "iban"}
WORDS |= {"dob", "birthdate", "birthday", "passport", "insurance"}
FEW = 20  # rows up to which it means little that every one has another value


def used(study: Study, table: Table) -> list[str]:
    """The features in the study's order that the table has."""
    return [name for name in concerned(study, table)[1:] if name in table.columns]


def id_like(study: Study, table: Table) -> dict[str, str]:
    """The columns in use that look like identifiers, and why."""
    found = {}
    for name in [study.target, *used(study, table)]:
        why = looks_like_id(name, table) if name in table.columns else ""
        if why:
            found[name] = why
    return found


def looks_like_id(name: str, table: Table) -> str:
    """Why a column looks like an identifier; empty where it does not."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    if {word.lower() for word in re.split(r"[^A-Za-z]+", spaced)} & WORDS:
        return "its name says so"
    if table.kinds[name] not in LABELS or table.n_rows <= FEW:
        return ""
    values = [value for value in table.labels(name) if value is not None]
    if len(values) > FEW and len(set(values)) == len(values):
        return "each row has another value"
    return ""
