"""Problems of nodes that live, as their executors report them."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.gpu_rules import follow_rules
from services.placement.core.pool.state import Pool
from shared.contracts.node_problems import PROBLEMS_FROM, NodeProblemNoted, ReportedProblem
from shared.ledger.decider import Decision, UnitStart


def note_problems(
    pool: Pool, reports: tuple[ReportedProblem, ...], now: int, cause: str
) -> Iterator[Decision]:
    """Note the problems of nodes that began or are over, once however often they are reported."""
    if pool.settings is None or pool.settings.release < PROBLEMS_FROM:
        return
    for report in reports:
        node = pool.board.nodes.get(report.node_id)
        if node is None or node.incarnation != report.incarnation or node.lost_at is not None:
            continue
        if (report.problem in node.problems) is not report.present:
            yield UnitStart(NodeProblemNoted(**report.model_dump()), cause)
            yield from follow_rules(pool, report, now, cause)
