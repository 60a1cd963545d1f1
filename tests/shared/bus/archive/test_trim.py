from __future__ import annotations

from shared.bus.archive.chain import Chain
from shared.bus.archive.cut import Cut
from shared.bus.archive.segment import encode_entry
from shared.bus.archive.trim import trim_bound
from shared.bus.archive.walk import Walk
from shared.bus.inputs.inbox import ACCESS
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.log import Entry
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.access import TenantRetired
from shared.ledger.partition import TP

COMMANDS = TP("commands", 0)
LATER_MS = 10_000


def inputs(records: int) -> Chain:
    """Return the chain of an input: entries of two records, a second apart."""
    chain = Chain(COMMANDS)
    for first in range(0, records, 2):
        cut = Cut(Walk(COMMANDS, chain.cursor))
        for offset in (first, first + 1):
            cut.add(Entry(offset, None, b"c", (), 1_000 * offset))
        chain.add(encode_entry(cut.close(chain.end, "w", 1)[0]))
    return chain


def ledger(tp: TP, used: dict[str, int]) -> Chain:
    """Return the chain of a ledger of one record, with this input vector."""
    broker = MemoryBroker()
    writer = LedgerWriter(broker, tp.topic, tp.partition)
    writer.inputs = {key: (offset, 0, "") for key, offset in used.items()}
    writer.write([TenantRetired(tenant="ada")])
    chain, cut = Chain(tp), Cut(Walk(tp))
    cut.add(broker.entries(tp)[0])
    chain.add(encode_entry(cut.close(chain.end, "w", 1)[0]))
    return chain


def chains(used: int) -> dict[TP, Chain]:
    """Return the chains of `commands` and of its readers, which have used it this far."""
    readers = [TP(name, 0) for name in ("admission", "placement", "failslow")]
    return {COMMANDS: inputs(6), **{tp: ledger(tp, {COMMANDS.key: used}) for tp in readers}}


def test_the_last_record_that_was_read_back_stays() -> None:
    bound = trim_bound(COMMANDS, chains(6), 1, LATER_MS, 1)
    assert (bound.offset, bound.rule) == (3, "the last archived record stays")


def test_without_a_check_nothing_goes() -> None:
    bound = trim_bound(COMMANDS, chains(6), -1, LATER_MS, 1)
    assert (bound.offset, bound.rule) == (0, "nothing is archived and read back")


def test_an_entry_with_a_record_of_the_kept_time_stays() -> None:
    bound = trim_bound(COMMANDS, chains(6), 2, 3_000, 1)
    assert (bound.offset, bound.rule) == (2, "newer records are kept")


def test_what_a_decider_has_not_used_in_an_archived_record_stays() -> None:
    some = chains(6)
    some[TP("failslow", 0)] = ledger(TP("failslow", 0), {COMMANDS.key: 1})
    bound = trim_bound(COMMANDS, some, 2, LATER_MS, 1)
    assert (bound.offset, bound.rule) == (1, "failslow-0 has not used more")
    del some[TP("failslow", 0)]
    assert trim_bound(COMMANDS, some, 2, LATER_MS, 1).offset == 0


def test_access_stays_as_far_as_the_last_of_all_lanes_needs_it() -> None:
    names = ("admission", "priority", "placement", "failslow", "throttle")
    some = {TP(n, lane): ledger(TP(n, lane), {"access-0": 1}) for n in names for lane in (0, 1)}
    some[ACCESS] = ledger(ACCESS, {})
    since = 1_800_000_000_000
    assert trim_bound(ACCESS, some, 0, since, 2).rule == "the last archived record stays"
    some[TP("priority", 1)] = ledger(TP("priority", 1), {})
    assert trim_bound(ACCESS, some, 0, since, 2).offset == 0
