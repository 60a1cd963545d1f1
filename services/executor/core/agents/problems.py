"""Changes of the problems of a node, which placement does not know yet."""

from __future__ import annotations

from collections.abc import Mapping

from services.executor.core.agents.state import AgentPool
from shared.contracts.node_problems import PROBLEMS_FROM, NodeProblem, ReportedProblem


def changed_problems(
    state: AgentPool,
    node_id: str,
    present: Mapping[NodeProblem, str | None],
    gpus: Mapping[NodeProblem, tuple[int, ...]] | None = None,
) -> tuple[ReportedProblem, ...]:
    """Return the problems that began or are over, against what the ledger has.

    `present`: the detail of each that is seen, empty for one that is over; one whose state is not
    known now is left out, or None. `gpus`: numbers of the GPUs that have it. Earlier releases
    cannot read the report: none is sent to them.
    """
    node = state.nodes.get(node_id)
    if node is None or node.lost is not None or state.release < PROBLEMS_FROM:
        return ()
    return tuple(
        ReportedProblem(
            node_id=node_id,
            incarnation=node.incarnation,
            problem=problem,
            present=bool(detail),
            detail=detail[:512],
            gpus=(gpus or {}).get(problem, ()) if detail else (),
        )
        for problem, detail in present.items()
        if detail is not None and bool(detail) is not (problem in node.problems)
    )
