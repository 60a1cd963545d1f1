"""`python -m services.placement.proposals`: answers requests from stdin until it closes.

A scheduler may be of a package of others: here it can neither keep a lane waiting nor take more
memory than its bound, beyond which it gets a MemoryError, or the process dies.
"""

from __future__ import annotations

import resource
import time
from contextlib import suppress
from pathlib import Path

from services.placement.children import serving
from services.placement.core.scheduled.request import answer_to
from services.placement.proposals.messages import MEMORY_GIB, pack_answer, request_of
from shared.schedulers.registry import scheduler_classes


def answer(body: bytes) -> bytes:
    request = request_of(body)
    began_s = time.perf_counter()
    proposal = answer_to(request)
    propose_ms = (time.perf_counter() - began_s) * 1000
    return pack_answer(proposal.model_copy(update={"propose_ms": propose_ms}))


def bound_memory() -> None:
    """Bound what is allocated; where the machine, or the container, has less, this process ends."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_GIB << 30, MEMORY_GIB << 30))
    with suppress(OSError):  # Absent outside Linux.
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    bound_memory()
    scheduler_classes()
    serving.run(answer)
