"""The keys of ``study.toml``: where they stand, what they may be, what they are where left out."""

from __future__ import annotations

from typing import Any, NamedTuple

from unpooled.study import checks
from unpooled.study.checks import Check
from unpooled.study.csv_file import CsvOptions

MODELS = ("lasso", "elastic net", "group lasso", "logistic", "multinomial", "poisson", "huber")
EXACT = ("auto", "sufficient_statistics", "prox_newton", "anderson", "fista")
FEDERATED = ("fast_fedda", "mc_fedda", "c_fedda", "fedda", "fedmid", "fedavg")
REQUIRED = object()


class Key(NamedTuple):
    """A key: its section ("" for the top), its name, the field of ``Study``, and a comment for the file."""

    section: str
    name: str
    field: str
    check: Check
    default: Any
    comment: str

    @property
    def path(self) -> str:
        """As users are told of it."""
        return f"{self.section}.{self.name}" if self.section else self.name


KEYS = (
    Key("", "name", "name", checks.text, REQUIRED, "what the study is called"),
    Key("", "sites", "sites", checks.site_ids, REQUIRED, "one id a site, as it will sign in"),
    Key("", "address", "address", checks.address, "127.0.0.1:9092", "where sites reach the coordinator"),
    Key("", "results", "results", checks.text, "results", "folder of the results, beside this file"),
    Key("", "share_results", "share_results", checks.flag, False, "whether sites are given the results"),
    Key("data", "target", "target", checks.text, REQUIRED, "the column to be explained"),
    Key("data", "features", "features", checks.features, REQUIRED, "the columns that explain it"),
    Key(
        "data",
        "categorical",
        "categorical",
        checks.categorical,
        {},
        'columns with levels: "agree", or the levels themselves, the first one the reference',
    ),
    Key(
        "data",
        "missing",
        "missing",
        checks.word("refuse", "mean"),
        "refuse",
        'missing numbers: "refuse", or "mean" fills in the mean over all sites',
    ),
    Key(
        "data",
        "csv",
        "csv",
        checks.csv,
        CsvOptions(),
        "how this site's CSV file is written: separator, decimal, encoding, missing, text",
    ),
    Key(
        "data",
        "rare",
        "rare",
        checks.word("drop", "refuse"),
        "drop",
        'what few rows of a site or fold have: merge levels, leave out 0/1 and numeric columns; or "refuse"',
    ),
    Key("model", "kind", "model", checks.word(*MODELS), REQUIRED, ", ".join(MODELS)),
    Key(
        "model",
        "lambda",
        "lam",
        checks.either(checks.word("path", "cv"), checks.number(0.0)),
        "cv",
        'a number beside the mean loss of all rows, "path" or "cv"',
    ),
    Key(
        "model",
        "standardise",
        "standardise",
        checks.flag,
        True,
        "penalise columns of mean 0, variance 1 (of values observed)",
    ),
    Key(
        "model",
        "intercept",
        "intercept",
        checks.either(checks.word("sites"), checks.flag),
        True,
        'true, false, or "sites": one for every site',
    ),
    Key(
        "model",
        "l1_ratio",
        "l1_ratio",
        checks.number(0.0, 1.0),
        None,
        "elastic net: ρ of ρ‖w‖₁ + (1−ρ)/2‖w‖²",
    ),
    Key(
        "model", "delta", "delta", checks.number(0.0, above=True), 1.35, "huber: where the loss turns linear"
    ),
    Key(
        "model",
        "groups",
        "groups",
        checks.groups,
        {},
        "group lasso: columns by group; dummies are one already",
    ),
    Key("model", "unpenalised", "unpenalised", checks.names, (), "columns that the penalty leaves alone"),
    Key("model", "n_lambdas", "n_lambdas", checks.whole(2), 100, 'of "path" and "cv"'),
    Key(
        "model",
        "ratio",
        "ratio",
        checks.number(0.0, 1.0, above=True),
        0.001,
        "the smallest λ over the largest",
    ),
    Key("model", "criterion", "criterion", checks.word("bic", "ebic", "aic"), "bic", 'which λ of a "path"'),
    Key(
        "model",
        "folds",
        "folds",
        checks.either(checks.word("sites"), checks.whole(2)),
        5,
        'of "cv": a number, or "sites" to leave one site out at a time',
    ),
    Key(
        "model", "rule", "rule", checks.word("min", "1se"), "min", 'of "cv": least loss, or within one error'
    ),
    Key(
        "solver",
        "method",
        "solver",
        checks.word(*EXACT, *FEDERATED),
        "auto",
        "auto: exact, in few rounds; or " + ", ".join(FEDERATED),
    ),
    Key(
        "solver", "tolerance", "tolerance", checks.number(0.0, above=True), 1e-8, "exact: of the duality gap"
    ),
    Key("solver", "max_rounds", "max_rounds", checks.whole(1), 500, "exact: stop after so many"),
    Key("solver", "rounds", "rounds", checks.whole(1), 100, "others: how many"),
    Key("solver", "local_steps", "local_steps", checks.whole(1), 10, "others: steps at a site in each round"),
    Key("solver", "batch_size", "batch_size", checks.whole(0), 0, "others: rows of a step; 0 for all"),
    Key(
        "solver",
        "aggregate",
        "aggregate",
        checks.either(checks.word("mean", "median"), checks.number(0.0, 0.49)),
        "mean",
        'others: "mean", "median", or the share to trim at either end',
    ),
    Key("solver", "seed", "seed", checks.whole(0), 0, "of minibatches and folds"),
    Key("limits", "minimum_sites", "minimum_sites", checks.whole(1), None, "fewer do not start, nor go on"),
    Key(
        "limits",
        "minimum_rows",
        "minimum_rows",
        checks.whole(0),
        10,
        "at a site; its sums rest on so many (half in a fold), and values that fewer have are left out",
    ),
    Key("limits", "max_questions", "max_questions", checks.whole(1), None, "of one request to a site"),
    Key("limits", "max_requests", "max_requests", checks.whole(1), None, "that a site answers in all"),
    Key("limits", "max_numbers", "max_numbers", checks.whole(1), 10**10, "that leave a site in all"),
    Key(
        "limits",
        "norm_bound",
        "norm_bound",
        checks.number(0.0),
        0.0,
        "solvers with rounds: an upload of a larger norm does not count; 0 for no bound",
    ),
    Key("limits", "join_timeout", "join_timeout", checks.number(1.0), 3600.0, "seconds to wait for sites"),
    Key(
        "limits", "round_timeout", "round_timeout", checks.number(1.0), 300.0, "seconds to wait for an answer"
    ),
    Key("limits", "grace", "grace", checks.number(0.0), 60.0, "seconds more for a site that was lost"),
)
SECTIONS = ("", "data", "model", "solver", "limits")
LOCAL = (
    "address",
    "results",
    "csv",
    "join_timeout",
    "round_timeout",
    "grace",
)  # a site's copy may differ in these
