"""First come, first served."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from services.throttle.core.disciplines.competition import CompetingQueue, Competition
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import ServingOrder


@dataclass(slots=True)
class Fcfs(ServingOrder):
    """One queue, in the order of arrival. The difference of services has no bound."""

    queue: deque[ServedRequest] = field(default_factory=deque)

    def enqueue(self, request: ServedRequest) -> None:
        self.queue.append(request)

    def withdraw(self, request: ServedRequest) -> None:
        self.queue.remove(request)

    def next_request(self) -> ServedRequest | None:
        return self.queue[0] if self.queue else None

    def competition(self, request: ServedRequest) -> Competition:
        return Competition(CompetingQueue(0.0, 1.0, self.queue))

    def start(self, request: ServedRequest) -> None:
        self.queue.remove(request)
