"""GPUs that failed or are slowed down, by node, as the ledger has them.

The readings themselves come with telemetry and are gone after a restart. What the rules of the
agent and of placement made of them is a fact, and stays one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from shared.contracts.node_problems import GPU_FAULT, NodeGpusNoted, NodeProblem

SEVERITY: Final[Mapping[NodeProblem, float]] = {GPU_FAULT: 1.0, "gpu_slow": 1 / 3}
"""Slowdown that each problem counts for in the health of its node: a failed GPU stops a job, as one
that makes it take twice as long; a slowed one is reported below 0.75 of its highest clock. GPUs
that are others than declared are well, so that problem is not among them."""


@dataclass(slots=True)
class GpuProblems:
    """Problem -> its detail, by node; a node without one is not in it."""

    by_node: dict[str, dict[NodeProblem, str]] = field(default_factory=dict)

    def is_known(self, node_id: str, problem: NodeProblem) -> bool:
        return problem in self.by_node.get(node_id, {})

    def of(self, node_id: str) -> tuple[NodeProblem, ...]:
        return tuple(self.by_node.get(node_id, ()))

    def sentences(self, node_id: str) -> tuple[str, ...]:
        """Return the problems of a node in words, as evidence."""
        present = self.by_node.get(node_id, {})
        return tuple(f"{problem} of {node_id}: {detail}" for problem, detail in present.items())

    def note(self, event: NodeGpusNoted) -> None:
        if event.present:
            self.by_node.setdefault(event.node_id, {})[event.problem] = event.detail
            return
        present = self.by_node.get(event.node_id, {})
        present.pop(event.problem, None)
        if not present:
            self.by_node.pop(event.node_id, None)


def fault_id_of(event: NodeGpusNoted) -> str:
    """Return the id under which a problem counts: once per incarnation, however often it comes."""
    return f"{event.node_id}/{event.incarnation}/{event.problem}"
