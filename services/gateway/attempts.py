"""Counts who was turned away, and has access note it: bounded, however many try."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import uuid4

from fastapi import Request

from services.gateway.outbox import Outbox, OutgoingCommand
from services.gateway.problem import ApiError
from shared.contracts.access import Attempt, NoteAttempts

EVERY_S = 5.0
MOST_KINDS = 64
TOPIC = "access.commands"
TURNED_AWAY = (401, 403)

Kind = tuple[str, str, int]


class DeniedAttempts:
    """Principal, route and status to requests; kinds beyond the most are counted together."""

    def __init__(self, outbox: Outbox, gateway: str) -> None:
        self._outbox = outbox
        self._gateway = gateway
        self._counts: Counter[Kind] = Counter()

    def note(self, request: Request, refusal: ApiError) -> None:
        if refusal.status not in TURNED_AWAY:
            return
        principal = getattr(request.state, "principal", "")
        kind = (principal[:160], _action(request), refusal.status)
        is_full = len(self._counts) >= MOST_KINDS - len(TURNED_AWAY)
        self._counts[
            ("", "", refusal.status) if is_full and kind not in self._counts else kind
        ] += 1

    async def run(self) -> None:
        """Tells them until it is cancelled; what the broker did not take is told again."""
        while True:
            await asyncio.sleep(EVERY_S)
            if self._counts:
                await self._tell()

    async def _tell(self) -> None:
        counts, self._counts = self._counts, Counter()
        attempts = tuple(
            Attempt(principal=who, action=action, status=status, requests=requests)
            for (who, action, status), requests in sorted(counts.items())
        )
        command = NoteAttempts(gateway=self._gateway, attempts=attempts)
        try:
            await self._outbox.put(TOPIC, 0, OutgoingCommand(str(uuid4()), command, self._gateway))
        except ApiError:
            self._counts.update(counts)


def _action(request: Request) -> str:
    """The route's pattern, not its path: ids of others are no business of the record."""
    route = request.scope.get("route")
    return f"{request.method} {getattr(route, 'path', '')}"[:128]
