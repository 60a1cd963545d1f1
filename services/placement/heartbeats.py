"""Reads the soft topic `heartbeats` and offers the nodes that fell silent to their lane."""

from __future__ import annotations

import time

from pydantic import ValidationError

from services.placement.core.pool.state import Pool
from services.placement.silence import Silence, chunks
from shared.bus.lane import Lane
from shared.bus.log import Entry, Log
from shared.bus.tail import TopicTail
from shared.contracts.reports import Heartbeats, NodesSilent
from shared.contracts.upcast import UpcastError, upcast
from shared.ledger import cloudevents
from shared.ledger.partition import TP

LOOK_S = 0.5
RECORDS_PER_LOOK = 5_000
NODES_PER_OFFER = 32


async def watch(lane: Lane[Pool], log: Log) -> None:
    """Run for as long as the lane is held; lost or repeated heartbeats do no harm."""
    tail = TopicTail(log, lossy=True)
    tp = TP("heartbeats", lane.partition)
    await tail.start_at_end([tp])
    silence = Silence(time.monotonic())
    try:
        while True:
            records = (await tail.poll(LOOK_S, RECORDS_PER_LOOK)).get(tp, [])
            note_heartbeats(silence, records)
            if len(records) < RECORDS_PER_LOOK:
                await offer_silent(lane, silence)
    finally:
        await tail.stop()


def note_heartbeats(silence: Silence, records: list[Entry]) -> None:
    now_s = time.monotonic()
    for record in records:
        heartbeat = decoded(record.value)
        if heartbeat is not None:
            silence.note(heartbeat.nodes, now_s)


def decoded(value: bytes | None) -> Heartbeats | None:
    """Return the heartbeat; None for any other record, which counts as a lost one."""
    try:
        envelope = cloudevents.decode(value)
        type_, body = upcast(envelope.type, envelope.body)
        return Heartbeats.model_validate_json(body) if type_ == Heartbeats.TYPE else None
    except (cloudevents.Malformed, UpcastError, ValidationError):
        return None


async def offer_silent(lane: Lane[Pool], silence: Silence) -> None:
    """Offer silent nodes and wait until each offer is in the ledger, so that none is repeated."""
    state = lane.state
    present = {
        node.node_id: node.incarnation
        for node in state.board.nodes.values()
        if node.lost_at is None
    }
    silent = silence.look(present.items(), state.lease_ms / 1000, time.monotonic())
    for names in chunks(silent, NODES_PER_OFFER):
        nodes = {name: present[name] for name in names}
        longest_s = max(silent[name] for name in names)
        await lane.offer(NodesSilent(nodes=nodes, silent_s=longest_s))
