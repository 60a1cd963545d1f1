"""Counts denied requests in bounded memory and has access record them."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import uuid4

from fastapi import Request

from services.gateway.kafka.outbox import Outbox, OutgoingCommand
from services.gateway.responses.problem import ApiError
from shared.contracts.access import Attempt, NoteAttempts

EVERY_S = 5.0
MAX_KINDS = 64
TOPIC = "access.commands"
DENIED = (401, 403)

Kind = tuple[str, str, int]


class DeniedAttempts:
    """Number of denied requests by principal, route and status.

    Beyond `MAX_KINDS` combinations, requests are counted by status alone.
    """

    def __init__(self, outbox: Outbox, gateway: str) -> None:
        self._outbox = outbox
        self._gateway = gateway
        self._counts: Counter[Kind] = Counter()

    def count(self, request: Request, refusal: ApiError) -> None:
        if refusal.status not in DENIED:
            return
        principal = getattr(request.state, "principal", "")
        kind = (principal[:160], _action(request), refusal.status)
        is_full = len(self._counts) >= MAX_KINDS - len(DENIED)
        self._counts[
            ("", "", refusal.status) if is_full and kind not in self._counts else kind
        ] += 1

    async def run(self) -> None:
        """Report the counts until cancelled; what was not acknowledged is reported again."""
        while True:
            await asyncio.sleep(EVERY_S)
            if self._counts:
                await self._report()

    async def _report(self) -> None:
        counts, self._counts = self._counts, Counter()
        attempts = tuple(
            Attempt(principal=principal, action=action, status=status, requests=requests)
            for (principal, action, status), requests in sorted(counts.items())
        )
        command = NoteAttempts(gateway=self._gateway, attempts=attempts)
        try:
            await self._outbox.put(TOPIC, 0, OutgoingCommand(str(uuid4()), command, self._gateway))
        except ApiError:
            self._counts.update(counts)


def _action(request: Request) -> str:
    """Return method and pattern of the route; the path itself may contain ids of other tenants."""
    route = request.scope.get("route")
    return f"{request.method} {getattr(route, 'path', '')}"[:128]
