"""A report on which placement raises is quarantined alone, on its real lane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from services.placement.app import decode_report
from services.placement.core.decide import Placement
from services.placement.core.lifecycle import nodes
from services.placement.core.pool.state import Pool
from shared.bus.inputs.inbox import ACCESS
from shared.bus.lane.lane import Lane
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.codec import encode
from shared.contracts.pools import PoolConfigured
from shared.contracts.rejected import InputQuarantined, InputRetried, InputRetryRequested
from shared.contracts.reports import ExecutorReported
from shared.ledger import cloudevents
from shared.ledger.decider import Decision
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from tests.harness.ledger import accepted
from tests.services.placement.core.lane import registered

REPORTS, LEDGER = TP("reports", 0), TP("placement", 0)
register = nodes.register


def raises(pool: Pool, report: Any, *more: Any) -> Iterator[Decision]:
    if report.node_id == "n2":
        raise ZeroDivisionError("a defect on purpose")
    return register(pool, report, *more)


async def lane_of(broker: MemoryBroker) -> Lane[Pool]:
    """Start a process, and let it decide all that there is."""
    decoder = InputDecoder("placement", decode_report, Placement().consumed_events)
    lane = Lane(Placement(), 0, MemoryLog(broker), inputs=[ACCESS, REPORTS], decoder=decoder)
    await lane.start()
    for tp in (ACCESS, REPORTS):
        for entry in broker.entries(tp)[lane.next_offsets()[tp] :]:
            await lane.deliver(tp, entry.offset, entry.value)
    while lane.inbox.pending:
        await lane.poll()
    return lane


async def test_a_node_on_which_placement_raises_keeps_no_other_from_joining(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = MemoryBroker()
    access = LedgerWriter(broker, "access")
    access.write([PoolConfigured(partition=0, pool="p")])
    reports = tuple(registered(name) for name in ("n1", "n2", "n3"))
    message = ExecutorReported(executor_id="e1", reports=reports)
    value = cloudevents.encode(
        id="r", source="/test", type=message.TYPE, data=encode(message), at_ms=1
    )
    broker.append(REPORTS, value)
    with monkeypatch.context() as patch:
        patch.setattr(nodes, "register", raises)
        lane = await lane_of(broker)
    assert set(lane.state.board.nodes) == {"n1", "n3"}

    facts = [
        fact
        for record in accepted(LEDGER, broker.entries(LEDGER))
        for fact in record.facts(own=True)
    ]
    (aside,) = (fact for fact in facts if isinstance(fact.event, InputQuarantined))
    access.write([InputRetryRequested(input_id=aside.id)])
    mended = await lane_of(broker)
    assert set(mended.state.board.nodes) == {"n1", "n2", "n3"}
    (*_, last) = accepted(LEDGER, broker.entries(LEDGER))
    outcomes = [f.event for f in last.facts(own=True) if isinstance(f.event, InputRetried)]
    assert outcomes == [InputRetried(input_id=aside.id, outcome="decided")]
