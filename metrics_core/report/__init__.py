"""The report page: everything about some runs in one HTML file that needs nothing else."""

from metrics_core.report.page import write_report as write_report
