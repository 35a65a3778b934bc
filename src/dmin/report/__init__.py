"""Reports: pages in one file, with the look of the service's page, rendered from templates that escape everything."""

from dmin.report.page import ICON, LOOK, Report
from dmin.report.parts import Bar, BarGroup, Cell, Dot, TextRow, Theme, confusion_matrix, percent

__all__ = [
    "ICON",
    "LOOK",
    "Bar",
    "BarGroup",
    "Cell",
    "Dot",
    "Report",
    "TextRow",
    "Theme",
    "confusion_matrix",
    "percent",
]
