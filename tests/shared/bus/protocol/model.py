"""A small model of the ledger protocol, searched through every order of events.

Two or three writers share two inputs and one log. An append attempt may be lost, doubled or late,
its answer may be lost, a writer may crash and fold again. Each rule of the protocol can be switched
off; the search then finds the violation that the rule prevents.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Rules:
    """The rules of the protocol; a test switches one off."""

    reader_checks: bool = True
    """Readers ignore what does not follow on the last accepted record."""
    chain_by_id: bool = True
    """`prev` is the id of the last accepted record; off: only `seq` counts."""
    checks_ack: bool = True
    """An ack at another offset than expected leads to a fold."""
    skips_below_vector: bool = True
    """After a fold, inputs that the log has used are dropped."""
    checks_gap: bool = True
    """An input that is not the next one is read again, not used."""
    numbers: bool = True
    """A record's `seq` is looked at too."""
    answers_late: bool = True
    """Clients are answered once the record is accepted; off: when it is sent."""
    writers: int = 2
    inputs: int = 2
    max_records: int = 4
    crashes: int = 1
    accidents: int = 1


class Rec(NamedTuple):
    id: int
    seq: int
    prev: int
    used: tuple[int, int]
    """First and next offset of the input it used."""


class Writer(NamedTuple):
    """The state of a writer: position in the log, last accepted record, next input."""

    next: int = 0
    seq: int = 0
    last: int = 0
    input: int = 0
    sent: Rec | None = None
    ack: int | None = None
    """None: nothing came yet; -1: the answer is lost."""
    answered: tuple[int, ...] = ()
    """Ids of the records whose clients this writer has answered."""


class World(NamedTuple):
    log: tuple[Rec, ...] = ()
    late: tuple[Rec, ...] = ()
    writers: tuple[Writer, ...] = (Writer(),) * 2
    ids: int = 0
    crashes: int = 0
    accidents: int = 0


def accepted(log: tuple[Rec, ...], rules: Rules) -> list[Rec]:
    records: list[Rec] = []
    for record in log:
        last = records[-1] if records else Rec(0, 0, 0, (0, 0))
        follows = not rules.numbers or record.seq == last.seq + 1
        chained = not rules.chain_by_id or record.prev == last.id
        if not rules.reader_checks or (follows and chained):
            records.append(record)
    return records


def violation(world: World, rules: Rules) -> str:
    """Return the violation in this world; empty if there is none."""
    records = accepted(world.log, rules)
    position = 0
    for record in records:
        if record.used[0] != position:
            return f"input {record.used[0]} used where {position} was due"
        position = record.used[1]
    ids = {record.id for record in records}
    for writer in world.writers:
        for id in writer.answered:
            if id not in ids:
                return "a client was answered by a record that no reader accepts"
    return ""


def fold(writer: Writer, log: tuple[Rec, ...], rules: Rules) -> Writer:
    records = accepted(log, rules)
    last = records[-1] if records else Rec(0, 0, 0, (0, 0))
    used = last.used[1] if rules.skips_below_vector else min(writer.input, last.used[1])
    answered = writer.answered
    if writer.sent is not None and writer.sent in records:
        answered = (*answered, writer.sent.id)
    return Writer(len(log), last.seq, last.id, used, answered=answered)


def successors(world: World, rules: Rules) -> Iterator[World]:
    for index, writer in enumerate(world.writers):
        yield from _writer_steps(world, index, writer, rules)
    for record in world.late:
        rest = tuple(r for r in world.late if r is not record)
        yield world._replace(log=(*world.log, record), late=rest)


def _writer_steps(world: World, index: int, writer: Writer, rules: Rules) -> Iterator[World]:
    if writer.sent is None:
        yield from _send(world, index, writer, rules)
    else:
        yield _learn(world, index, writer, rules)
    if world.crashes < rules.crashes:
        fresh = fold(Writer(answered=writer.answered), world.log, rules)
        crashed = world._replace(crashes=world.crashes + 1)
        yield _with(crashed, index, fresh)
        if not rules.checks_gap:
            # Its host had committed an offset beyond the ledger's vector.
            yield _with(crashed, index, fresh._replace(input=fresh.input + 1))


def _send(world: World, index: int, writer: Writer, rules: Rules) -> Iterator[World]:
    if writer.input >= rules.inputs or world.ids >= rules.max_records:
        return
    record = Rec(world.ids + 1, writer.seq + 1, writer.last, (writer.input, writer.input + 1))
    base = world._replace(ids=world.ids + 1)
    answered = writer.answered if rules.answers_late else (*writer.answered, record.id)
    sent = writer._replace(sent=record, answered=answered)
    landed = base._replace(log=(*world.log, record))
    yield _with(landed, index, sent._replace(ack=len(world.log)))
    if world.accidents >= rules.accidents:
        return
    bad = base._replace(accidents=world.accidents + 1)
    there = bad._replace(log=(*world.log, record))
    unknown = sent._replace(ack=-1)
    yield _with(bad, index, unknown)
    yield _with(there, index, unknown)
    yield _with(bad._replace(late=(*world.late, record)), index, unknown)
    twice = bad._replace(log=(*world.log, record, record))
    yield _with(twice, index, sent._replace(ack=len(world.log)))


def _learn(world: World, index: int, writer: Writer, rules: Rules) -> World:
    """Return the world after the answer has arrived, or its time is over."""
    record, ack = writer.sent, writer.ack
    assert record is not None and ack is not None
    believed = ack == writer.next or (ack >= 0 and not rules.checks_ack)
    if not believed:
        return _with(world, index, fold(writer, world.log, rules))
    decided = Writer(
        ack + 1, record.seq, record.id, record.used[1], answered=(*writer.answered, record.id)
    )
    return _with(world, index, decided)


def _with(world: World, index: int, writer: Writer) -> World:
    writers = list(world.writers)
    writers[index] = writer
    return world._replace(writers=tuple(writers))


@dataclass(frozen=True)
class Result:
    states: int
    problem: str
    complete: int
    """Worlds in which every input is used by an accepted record."""


def search(rules: Rules) -> Result:
    """Search breadth first through every order, to the first world with a violation."""
    begin = World(writers=(Writer(),) * rules.writers)
    seen = {_canonical(begin)}
    frontier = deque([begin])
    complete = 0
    while frontier:
        world = frontier.popleft()
        if problem := violation(world, rules):
            return Result(len(seen), problem, complete)
        records = accepted(world.log, rules)
        complete += bool(records) and records[-1].used[1] == rules.inputs
        for after in successors(world, rules):
            key = _canonical(after)
            if key not in seen:
                seen.add(key)
                frontier.append(after)
    return Result(len(seen), "", complete)


def _canonical(world: World) -> World:
    """Return the world with its writers sorted, since they are alike."""
    return world._replace(writers=tuple(sorted(world.writers, key=repr)))
