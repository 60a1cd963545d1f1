"""Decisions per CPU second of the bare core: which request is next, and its accounting."""

from __future__ import annotations

import time
from itertools import count

from services.throttle.core.disciplines.catalog import berth
from services.throttle.core.disciplines.limits import Limits
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import EngineLoad

LOAD = EngineLoad(held_tokens=9_500, batch_tokens=10_000, waiting=100)
ROUNDS = 5


def decisions_per_s(tenants: int, decisions: int) -> float:
    """Return decisions per CPU second, the median of rounds, with so many tenants queued.

    Each is the whole way of a request without HTTP and ledger: it is checked and queued, the next
    one is chosen and started, charged once, and finished.
    """
    discipline = berth(Limits())
    numbers = count()
    for number in range(2 * tenants):
        discipline.enqueue(_request(next(numbers), number % tenants))
    rates = []
    for _ in range(ROUNDS):
        requests = [_request(next(numbers), number % tenants) for number in range(decisions)]
        began_s = time.process_time()
        for request in requests:
            if discipline.refusal(request, LOAD, 0) is None:
                discipline.enqueue(request)
            first = discipline.next_request()
            assert first is not None
            discipline.start(first, 0)
            discipline.charge(first, 20, 0)
            discipline.finish(first)
        rates.append(decisions / (time.process_time() - began_s))
    return round(sorted(rates)[ROUNDS // 2])


def _request(number: int, tenant: int) -> ServedRequest:
    return ServedRequest(f"r{number}", f"t{tenant:05d}", 50 + number % 400, 200, number)
