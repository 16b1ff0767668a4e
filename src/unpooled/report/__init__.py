"""One self-contained HTML file about some runs: it needs no network, no server and no library."""

from unpooled.report.build import experiment_report, write_report
from unpooled.report.grouping import grouped
from unpooled.report.sweep_report import study_report

__all__ = ["experiment_report", "grouped", "study_report", "write_report"]
