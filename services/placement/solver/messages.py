"""Messages of the solver's pipes: msgpack of plain data."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from services.placement.core.solver.instance import Instance, Solution


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
    return msgspec.msgpack.encode(message)


def request_of(body: bytes) -> SolverRequest:
    return msgspec.msgpack.decode(body, type=SolverRequest)


def reply_of(body: bytes) -> SolverReply:
    return msgspec.msgpack.decode(body, type=SolverReply)
