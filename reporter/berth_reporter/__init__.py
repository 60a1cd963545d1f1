"""Reports the iterations of a training loop to the agent of its node. Standard library only."""

from __future__ import annotations

from berth_reporter.reporter import Reporter, report

__all__ = ["VERSION", "Reporter", "report"]

VERSION = "0.1.0"
