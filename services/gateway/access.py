"""The gateway's view of the access ledger: pools, senders, bearers. It needs no Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from services.gateway.core.submission import Sender
from services.gateway.responses.problem import ForbiddenError, unauthenticated, unavailable
from services.gateway.tokens import Tokens
from shared.bus.clock import now_ms
from shared.bus.hosting.access import AccessFollower
from shared.bus.logs.log import Log
from shared.contracts.access import Role
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.keys import parse_bearer
from shared.contracts.registry import Bearer
from shared.ledger.reader import Accepted
from shared.oidc.tokens import is_token

Answer: TypeAlias = CommandAccepted | CommandRefused


class AccessDirectory(AccessFollower):
    """Follows the access ledger and authenticates bearers of API keys and of tokens."""

    def __init__(self, open_log: Callable[[], Log], tokens: Tokens | None = None) -> None:
        super().__init__(open_log)
        self._tokens = tokens
        self._lanes: dict[str, int] = {}
        self._at_ms = 0
        self._answers_at: set[str] = set()
        self._awaited: dict[str, asyncio.Future[Answer]] = {}

    @property
    def ready(self) -> bool:
        return self.caught_up.is_set()

    def fold(self, accepted: Accepted) -> None:
        at_ms = accepted.record.at
        if at_ms > self._at_ms:
            self._at_ms, self._answers_at = at_ms, set()
        for fact in accepted.facts():
            self.view.apply(fact.event)
            if isinstance(fact.event, CommandAccepted | CommandRefused):
                self._answers_at.add(fact.event.command_id)
                self._resolve(fact.event)
        self._lanes = {name: pool.partition for name, pool in self.view.pools.items()}

    def has_folded_answer(self, command_id: str, at_ms: int) -> bool:
        """True once this gateway has folded the answer that access gave at that time. The times of
        the ledger never decrease; several records may have the same."""
        return at_ms < self._at_ms or command_id in self._answers_at

    @contextmanager
    def awaited(self, command_id: str) -> Iterator[asyncio.Future[Answer]]:
        """Yield the future answer of access to a command that is sent within the block."""
        answer = self._awaited[command_id] = asyncio.get_running_loop().create_future()
        try:
            yield answer
        finally:
            del self._awaited[command_id]

    def _resolve(self, answer: Answer) -> None:
        awaited = self._awaited.get(answer.command_id)
        if awaited is not None and not awaited.done():
            awaited.set_result(answer)

    def pools(self) -> Mapping[str, int]:
        """Return the lane of each pool."""
        return self._lanes

    def sender(self, tenant: str) -> Sender:
        """Return the sender; an unknown tenant has no default pool."""
        view = self.view
        pool, bounds = view.default_pool(tenant) or "", view.bounds_of(tenant)
        return Sender(tenant, pool, bounds, view.users.of(tenant))

    def is_live(self, bearer: Bearer) -> bool:
        """True while the same bearer would still be admitted; open streams check it repeatedly."""
        if bearer.expires_s is not None:
            return self._is_known(bearer.tenant) and now_ms() < bearer.expires_s * 1000
        return bearer.key_id in self.view.keys and bearer.key_id not in self.view.revoked

    async def bearer(self, authorization: str | None, at_least: Role) -> Bearer:
        """Return the bearer of a request; raises an ApiError with 401, 403 or 503."""
        if not self.ready:
            raise unavailable("starting", "access ledger not read yet; retry")
        bearer = await self._authenticated(parse_bearer(authorization))
        if bearer is None:
            raise unauthenticated("unknown API key; send Authorization: Bearer <key_id>.<secret>")
        if not bearer.has_role(at_least):
            raise ForbiddenError(bearer, f"role {bearer.role}; {at_least} is required")
        if bearer.tenant is None and not bearer.has_role("operator"):
            raise ForbiddenError(bearer, "the key belongs to no tenant; create one for a tenant")
        return bearer

    async def _authenticated(self, text: str) -> Bearer | None:
        if self._tokens is None or not is_token(text):
            return await self.authenticate(text)
        bearer = await self._tokens.bearer(text)
        if not self._is_known(bearer.tenant):
            await self.catch_up()
        if not self._is_known(bearer.tenant):
            raise ForbiddenError(bearer, f"unknown tenant in token: {bearer.tenant}")
        return bearer

    def _is_known(self, tenant: str | None) -> bool:
        return tenant is None or tenant in self.view.tenants
