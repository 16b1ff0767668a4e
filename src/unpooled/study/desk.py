"""A site in a study: it describes its table, prepares its rows as agreed, and answers what it may.

Every reply goes through ``handle``: there it is held against what the site refuses, written to the audit
file, and only then given to whatever carries it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unpooled.algorithms.exact.site import Site
from unpooled.arrays import Float
from unpooled.data import FederatedData
from unpooled.preprocessing.summaries import summary
from unpooled.remote.desk import Desk
from unpooled.remote.messages import Reply, Request
from unpooled.study.agreement import Agreement
from unpooled.study.audit import Audit
from unpooled.study.config import Study, StudyError
from unpooled.study.description import describe
from unpooled.study.design import encoded, federated
from unpooled.study.envelope import Envelope, Scaling, opened
from unpooled.study.patience import REFUSED
from unpooled.study.table import Table

Say = Callable[[str, Request, Reply], None]
