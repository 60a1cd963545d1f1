"""Reports iterations and checkpoints of a training to its node's agent. Standard library only."""

from __future__ import annotations

from berth_reporter.reporter import Reporter, checkpoint, report

__all__ = ["VERSION", "Reporter", "checkpoint", "report"]

VERSION = "0.1.0"
