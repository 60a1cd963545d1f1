"""Frames of the solver's pipes: a length of four bytes, then msgpack of plain data."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from services.placement.core.solver.instance import Instance, Solution

HEAD_BYTES = 4


@dataclass(frozen=True, slots=True)
class SolverRequest:
    """An instance with its limits: units of work, and wall seconds."""

    instance: Instance
    work: float
    wall_s: float | None


@dataclass(frozen=True, slots=True)
class SolverReply:
    """The solution, and the ms that the solver took for it."""

    solved: Solution
    solve_ms: float


def pack(message: SolverRequest | SolverReply) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(HEAD_BYTES, "big") + body


def length(head: bytes) -> int:
    return int.from_bytes(head, "big")


def request_of(body: bytes) -> SolverRequest:
    return msgspec.msgpack.decode(body, type=SolverRequest)


def reply_of(body: bytes) -> SolverReply:
    return msgspec.msgpack.decode(body, type=SolverReply)
