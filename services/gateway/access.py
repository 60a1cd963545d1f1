"""Who may ask for what: the `access` ledger folded in memory, good while Postgres is down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from aiokafka.errors import KafkaError

from services.gateway.core.submission import Sender
from services.gateway.problem import Forbidden, unauthenticated, unavailable
from services.gateway.tokens import Tokens, is_token
from shared.bus.clock import now_ms
from shared.bus.errors import OutcomeUnknown
from shared.bus.log import Log
from shared.bus.reader import Accepted
from shared.bus.tail import LedgerTail
from shared.contracts.access import Role
from shared.contracts.registry import AccessView, Bearer

LEDGER = "access"
RETRY_S = 1.0

log = logging.getLogger(__name__)


class Access:
    """Changes only by accepted events; a revoked key opens nothing from that moment on."""

    def __init__(self, open_log: Callable[[], Log], tokens: Tokens | None = None) -> None:
        self._open_log = open_log
        self._tokens = tokens
        self._lanes: dict[str, int] = {}
        self.view = AccessView()
        self.ready = False

    async def run(self) -> None:
        """Follows the ledger until it is cancelled; what is known stays good meanwhile."""
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError, OutcomeUnknown) as error:
                log.warning("access is not read", extra={"reason": type(error).__name__})
            await asyncio.sleep(RETRY_S)

    async def _follow(self) -> None:
        """From the beginning each time: it is short, and applying an event again changes nothing
        that its successors do not set right."""
        tail = LedgerTail(self._open_log(), {LEDGER: range(1)})
        try:
            await tail.start()
            while True:
                self.ready = self.ready or tail.caught_up
                for accepted in await tail.poll():
                    self.fold(accepted)
        finally:
            await tail.stop()

    def fold(self, accepted: Accepted) -> None:
        for fact in accepted.facts():
            self.view.apply(fact.event)
        self._lanes = {name: pool.partition for name, pool in self.view.pools.items()}

    def pools(self) -> Mapping[str, int]:
        """Lanes by pool."""
        return self._lanes

    def sender(self, tenant: str) -> Sender:
        """Also of an unknown tenant: it has no default pool."""
        return Sender(tenant, self.view.default_pool(tenant) or "")

    def is_live(self, bearer: Bearer) -> bool:
        """Would the same bearer still be let in? Streams ask, who began long ago."""
        if bearer.expires_s is not None:
            known = bearer.tenant is None or bearer.tenant in self.view.tenants
            return known and now_ms() < bearer.expires_s * 1000
        return bearer.key_id in self.view.keys and bearer.key_id not in self.view.revoked

    async def bearer(self, authorization: str | None, at_least: Role) -> Bearer:
        """The sender of a request; raises a 401, 403 or 503 Refusal."""
        if not self.ready:
            raise unavailable("starting", "the access ledger is not read yet")
        scheme, _, text = (authorization or "").partition(" ")
        bearer = await self._who(text.strip()) if scheme.lower() == "bearer" else None
        if bearer is None:
            raise unauthenticated("send Authorization: Bearer <key_id>.<secret>")
        if not bearer.may(at_least):
            raise Forbidden(bearer, f"a {bearer.role} may not do this")
        if bearer.tenant is None and not bearer.may("operator"):
            raise Forbidden(bearer, "this key belongs to no tenant")
        return bearer

    async def _who(self, text: str) -> Bearer | None:
        if self._tokens is None or not is_token(text):
            return self.view.authenticate(text)
        bearer = await self._tokens.bearer(text)
        if bearer.tenant is not None and bearer.tenant not in self.view.tenants:
            raise Forbidden(bearer, "the token's tenant is not registered here")
        return bearer
