"""Up to which offset a topic may be trimmed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared.bus.archive.chain import Chain
from shared.bus.inputs.inbox import ACCESS
from shared.contracts.topics import INPUTS, LEDGERS
from shared.ledger.partition import TP
from shared.ledger.record import next_of


@dataclass(frozen=True, slots=True)
class TrimBound:
    """The first offset that has to stay in the topic, and the rule that says so."""

    offset: int
    rule: str


def trim_bound(
    tp: TP, chains: Mapping[TP, Chain], checked: int, kept_since_ms: int, lanes: int
) -> TrimBound:
    """Return the bound of a partition.

    `checked` is the last entry that was read back. The last archived record that counts stays: the
    archiver and readers recognize the topic by it. So does what a decider has not used in an
    archived record: it could read that in the archive, but its host reads topics.
    """
    chain = chains[tp]
    bounds = [_of_checked(chain, checked), _of_time(chain, kept_since_ms)]
    bounds += [
        TrimBound(_used(chains, TP(reader, lane), tp), f"{reader}-{lane} has not used more")
        for reader in LEDGERS
        for lane in _lanes_of(reader, tp, lanes)
    ]
    return min(bounds, key=lambda bound: bound.offset)


def _of_checked(chain: Chain, checked: int) -> TrimBound:
    if checked < 0:
        return TrimBound(0, "nothing is archived and read back")
    last = max(0, chain.entries[checked].after.offset)
    return TrimBound(last, "the last archived record stays")


def _of_time(chain: Chain, kept_since_ms: int) -> TrimBound:
    """Keep the entries with records since then; an entry has the time of its last record."""
    offset = 0
    for entry in chain.entries:
        if entry.last_at >= kept_since_ms:
            break
        offset = entry.next
    return TrimBound(offset, "newer records are kept")


def _lanes_of(reader: str, tp: TP, lanes: int) -> range:
    """Return the lanes of a decider that read this partition."""
    if tp == ACCESS:
        return range(lanes) if reader != ACCESS.topic else range(0)
    reads = tp.topic in INPUTS[reader]
    return range(tp.partition, tp.partition + 1) if reads else range(0)


def _used(chains: Mapping[TP, Chain], reader: TP, tp: TP) -> int:
    chain = chains.get(reader)
    return next_of(chain.cursor.inputs.get(tp.key, 0)) if chain is not None else 0
