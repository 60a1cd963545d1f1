"""Reports iterations and checkpoints of a training to its node's agent. Standard library only.

`pytorch` and `lightning` are modules of their own, which import those libraries when used.
"""

from __future__ import annotations

from berth_reporter.iteration import Iteration
from berth_reporter.reporter import Reporter, checkpoint, report

__all__ = ["VERSION", "Iteration", "Reporter", "checkpoint", "report"]

VERSION = "0.1.0"
