"""Facts that a load process reports to the benchmark: one JSON line each."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

Kind = Literal["session", "heartbeat", "go", "fault", "loop_lag"]


class Observation(NamedTuple):
    """One fact of a simulated agent, or of its process.

    `begun_ms` is when the request was sent, `ended_ms` when its answer came. All times are wall
    milliseconds of this machine, as those of ledger records are.
    """

    kind: Kind
    name: str
    """Node; of `go` the allocation; of `fault` the request and its failure."""
    begun_ms: float
    ended_ms: float


Observer = Callable[[Kind, str, float, float], None]


def wall_ms() -> float:
    return time.time() * 1000


def encode_line(observation: Observation) -> bytes:
    return msgspec.json.encode(observation) + b"\n"


def decode_line(line: bytes) -> Observation:
    """Return the observation of a line. Raises msgspec.DecodeError for anything else."""
    return msgspec.json.decode(line, type=Observation)
