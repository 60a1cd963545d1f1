"""What goes through the pipes: a length of four bytes, then msgpack of plain data."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from services.placement.core.solver.instance import Instance, SolvedPlan

HEAD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Ask:
    """Solve this, within so much work and so many wall seconds."""

    instance: Instance
    work: float
    wall_s: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The plan, and how long the solver took for it."""

    solved: SolvedPlan
    solve_ms: float


def pack(message: Ask | Answer) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(HEAD_BYTES, "big") + body


def length(head: bytes) -> int:
    return int.from_bytes(head, "big")


def ask_of(body: bytes) -> Ask:
    return msgspec.msgpack.decode(body, type=Ask)


def answer_of(body: bytes) -> Answer:
    return msgspec.msgpack.decode(body, type=Answer)
