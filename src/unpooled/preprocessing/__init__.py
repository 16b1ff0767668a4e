"""Preprocessing without pooling: each site sends summaries of its rows, recorded in a ledger."""

from unpooled.preprocessing.encode import Encoded, encode
from unpooled.preprocessing.levels import Levels, agree_levels
from unpooled.preprocessing.moments import Moments, moments
from unpooled.preprocessing.prepare import prepare
from unpooled.preprocessing.prepared import Prepared
from unpooled.preprocessing.site_intercepts import SiteIntercepts, site_intercepts

__all__ = [
    "Encoded",
    "Levels",
    "Moments",
    "Prepared",
    "SiteIntercepts",
    "agree_levels",
    "encode",
    "moments",
    "prepare",
    "site_intercepts",
]
