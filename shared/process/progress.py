"""Reports of progress of long steps."""

from __future__ import annotations

from collections.abc import Callable

ReportLine = Callable[[str], None]
"""Prints or drops a line of progress."""

ReportCount = Callable[[int, int], None]
"""Shows or drops how many of how many parts are done."""
