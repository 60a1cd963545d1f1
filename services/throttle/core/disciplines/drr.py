"""Deficit round robin (Shreedhar and Varghese, SIGCOMM'95), in tokens."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from services.throttle.core.disciplines.competition import CompetingQueue, Competition
from services.throttle.core.disciplines.cost import LINEAR, Cost
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import ServingOrder

QUANTUM = 1000.0
"""Units of service that a tenant may use in one turn."""


@dataclass(slots=True)
class Turn:
    """A tenant in the round: its waiting requests, and the units that it may still use."""

    weight: float = 1.0
    requests: deque[ServedRequest] = field(default_factory=deque)
    deficit: float = 0.0

    def competing(self) -> CompetingQueue:
        return CompetingQueue(-self.deficit, self.weight, self.requests)


@dataclass(slots=True)
class DeficitRoundRobin(ServingOrder):
    """Tenants take turns; one may start requests while its deficit is positive.

    The length of an answer is unknown at the start, so the deficit becomes negative while output
    is made, and the tenant waits until its quanta have paid for it. A tenant whose queue is empty
    leaves the round; a debt stays, a credit does not.

    Bound: the services of two tenants of equal weight that are backlogged for a time differ in it
    by at most `2 (U + Q)`, `Q` being the quantum per weight: both get the same quanta, and
    a deficit is never above `Q` nor below that of a full batch, `-U` (`Vtc` has `U`).
    """

    quantum: float = QUANTUM
    cost: Cost = LINEAR
    turns: dict[str, Turn] = field(default_factory=dict)
    round: deque[str] = field(default_factory=deque)
    """The tenants with waiting requests; the first has the turn."""

    def enqueue(self, request: ServedRequest) -> None:
        turn = self.turns.setdefault(request.tenant, Turn())
        if not turn.requests:
            self.round.append(request.tenant)
        turn.requests.append(request)

    def withdraw(self, request: ServedRequest) -> None:
        turn = self.turns[request.tenant]
        turn.requests.remove(request)
        if not turn.requests:
            self.round.remove(request.tenant)
            turn.deficit = min(turn.deficit, 0.0)

    def next_request(self) -> ServedRequest | None:
        """Return the first request of the tenant that has the turn, or that gets it next.

        Quanta are only added when it starts, so that this changes nothing: the tenant is the
        first whose deficit becomes positive if all get equal quanta, in the order of the round.
        """
        tenant = self._next_tenant()
        return self.turns[tenant].requests[0] if tenant is not None else None

    def competition(self, request: ServedRequest) -> Competition:
        """Return the queues of the round, with their debts for counters."""
        own = self.turns.get(request.tenant) or Turn()
        others = [turn.competing() for turn in map(self.turns.__getitem__, self.round)]
        others = [queue for queue in others if queue.requests is not own.requests]
        return Competition(own.competing(), others)

    def start(self, request: ServedRequest) -> None:
        rounds = self._rounds_until(self.turns[request.tenant])
        if rounds:
            for tenant in self.round:
                turn = self.turns[tenant]
                turn.deficit += rounds * self.quantum * turn.weight
        while self.round[0] != request.tenant:
            self.round.rotate(-1)
        self._spend(request.tenant, self.cost.of(request.prompt_tokens, 0))
        self.withdraw(request)

    def charge(self, request: ServedRequest) -> None:
        prompt_tokens = request.prompt_tokens
        charged = self.cost.of(prompt_tokens, request.charged_tokens)
        due = self.cost.of(prompt_tokens, request.made_tokens) - charged
        self._spend(request.tenant, due)
        request.charged_tokens = request.made_tokens

    def settle_prompt(self, request: ServedRequest, prompt_tokens: int) -> None:
        charged = self.cost.of(request.prompt_tokens, request.charged_tokens)
        self._spend(request.tenant, self.cost.of(prompt_tokens, request.charged_tokens) - charged)

    def finish(self, request: ServedRequest) -> None:
        self.charge(request)

    def set_weight(self, tenant: str, weight: float) -> None:
        self.turns.setdefault(tenant, Turn()).weight = weight

    def _spend(self, tenant: str, units: float) -> None:
        """Take units off a deficit; a turn ends when none is left."""
        turn = self.turns[tenant]
        turn.deficit -= units
        if turn.deficit <= 0 and self.round and self.round[0] == tenant:
            self.round.rotate(-1)

    def _next_tenant(self) -> str | None:
        """Return the first tenant of the round with a credit, else the one that gets one first."""
        fewest: tuple[int, str] | None = None
        for tenant in self.round:
            rounds = self._rounds_until(self.turns[tenant])
            if not rounds:
                return tenant
            if fewest is None or rounds < fewest[0]:
                fewest = rounds, tenant
        return fewest[1] if fewest else None

    def _rounds_until(self, turn: Turn) -> int:
        """Return how many quanta make the deficit positive."""
        if turn.deficit > 0:
            return 0
        return int(-turn.deficit // (self.quantum * turn.weight)) + 1
