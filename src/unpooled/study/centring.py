"""Huber's loss begins at the mean of the target: far from it, only the few rows in between are curved."""

from __future__ import annotations

import numpy as np

from unpooled._ledger import Ledger
from unpooled.engines.remote.engine import Remote
from unpooled.exact import AndersonProxGradient
from unpooled.exact.clients import Question, open_clients
from unpooled.exact.oracle import NONE
from unpooled.problem import Problem
from unpooled.study.config import Study
from unpooled.study.sites_data import SitesData


def target_center(study: Study, problem: Problem, data: SitesData) -> tuple[float, Ledger]:
    """The mean of the target over all sites, in one round."""
    solver = AndersonProxGradient(study.minimum_rows)
    question = Question(solver, data.bind(problem), {"features": NONE})
    [total], traffic = open_clients(Remote(retries=0), data).ask([question])
    ledger = Ledger().after_answers(traffic.clients, traffic.floats_up, traffic.floats_down, traffic.kinds)
    return float(np.squeeze(total["mean_t"])), ledger
