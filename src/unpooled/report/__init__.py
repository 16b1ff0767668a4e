"""One self-contained HTML file about some runs: it needs no network, no server and no library."""

from unpooled.report.build import experiment_report, write_report
from unpooled.report.grouping import grouped

__all__ = ["experiment_report", "grouped", "write_report"]
