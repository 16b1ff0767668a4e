"""The rules of an answer: what the oracle says keeps to them, and what it could not say breaks one."""

import numpy as np
import pytest

import unpooled as up
from tests.exact.federations import LOSSES, federated
from unpooled.exact.expected import complaint, expected
from unpooled.exact.oracle import answer
from unpooled.exact.site import Site

P = 5
ALL, NONE = np.arange(P), np.empty(0, np.int64)


def question(size):
    w = np.full(size, 0.1)
    return {
        "moments": {"features": ALL, "center": np.zeros(P + 1)},
        "no matrix": {"features": NONE, "curvature": NONE},
        "gradient": {"w": w},
        "hessian": {"w": w, "working": np.arange(size)},
        "both": {"features": ALL, "w": w, "working": np.array([1, 2])},
        "models": {"models": np.stack([w, 1e200 * w])},
        "far": {"w": 1e300 * w, "working": ALL},
    }


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("intercept", [True, False, "sites"])
def test_what_the_oracle_says_keeps_to_the_rules(kind, intercept):
    data = federated(kind, n=60, p=P, sites=2)
    bound = up.Problem(LOSSES[kind], up.L1(0.1), intercept).bind(data)
    site = Site.of(data.client(0))
    for name, asked in question(bound.layout.size).items():
        if "models" in asked and intercept == "sites":  # needs the rows that were not left out
            continue
        for min_rows in (0, 1000):
            given = answer(bound, site, asked, min_rows)
            assert complaint(given, expected(bound, asked, site.n_rows)) is None, (name, min_rows)


@pytest.fixture(scope="module")
def bound():
    return up.Problem(up.Logistic(), up.L1(0.1), True).bind(federated("logistic", n=60, p=P, sites=2))


HIDDEN = {
    "diagonal": np.ones(P),
    "hidden_x": np.ones(P),
    "hidden_weight": np.array(1.0),
    "refused_rows": np.array(1),
    "refused_columns": np.array(0),
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"diagonal": np.ones(P + 1)}, "its diagonal has shape"),
        ({"hidden_x": np.full(P, np.nan)}, "its hidden_x holds NaN"),
        ({"hidden_weight": np.array(-1.0)}, "its hidden_weight holds -1"),
        ({"refused_rows": np.array(0)}, "its answer has no gram"),
    ],
)
def test_a_site_that_keeps_a_matrix_to_itself_may_send_its_diagonal(bound, change, words):
    asked = {"features": ALL}
    means = {
        "mean_x": np.ones(P),
        "mean_t": np.ones(1),
        "mean_xt": np.ones(P),
        "mean_yy": np.array(1.0),
        "floor": np.array(0.0),
        "rows": np.array(30),
    }
    said = complaint(means | HIDDEN | change, expected(bound, asked, 30))
    assert said is None if words is None else said.startswith(words)


@pytest.mark.parametrize(
    ("conjugate", "gradient", "words"),
    [
        (1.0, np.ones(P + 1), None),
        (np.inf, np.full(P + 1, np.inf), None),  # a dual point outside the domain
        (np.nan, np.full(P + 1, np.nan), None),
        (1.0, np.full(P + 1, np.nan), "its dual_gradient holds NaN"),
        (1.0, np.ones(P), "its dual_gradient has shape"),
    ],
)
def test_a_dual_point_need_not_be_one(bound, conjugate, gradient, words):
    asked = {"base": np.zeros(P + 1), "tilt": np.zeros(P + 1), "origin": np.zeros(P)}
    given = {"conjugate": np.array(conjugate), "dual_gradient": gradient}
    said = complaint(given, expected(bound, asked, 30))
    assert said is None if words is None else said.startswith(words)
