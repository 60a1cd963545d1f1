"""A short probe of one processor and of memory: the same work on every node and every day."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

ROUNDS = 50_000
"""Of the computation: some 20 ms."""
COPIED_BYTES = 32 * 2**20
REPEATS = 3
"""The shortest counts: a process that was interrupted took longer."""


def compute_s() -> float:
    return _least_s(lambda: hashlib.pbkdf2_hmac("sha256", b"probe", b"node", ROUNDS))


def copy_s() -> float:
    source = bytearray(COPIED_BYTES)
    return _least_s(lambda: bytes(source))


def _least_s(work: Callable[[], object]) -> float:
    times_s = []
    for _ in range(REPEATS):
        begin_s = time.perf_counter()
        work()
        times_s.append(time.perf_counter() - begin_s)
    return max(min(times_s), 1e-9)
