"""Who may ask for what; good while Postgres is down."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from services.gateway.core.submission import Sender
from services.gateway.problem import ForbiddenError, unauthenticated, unavailable
from services.gateway.tokens import Tokens, is_token
from shared.bus.access import AccessFollower
from shared.bus.clock import now_ms
from shared.bus.log import Log
from shared.contracts.access import Role
from shared.contracts.jobs import CommandAccepted, CommandRefused
from shared.contracts.registry import Bearer
from shared.ledger.reader import Accepted


class AccessDirectory(AccessFollower):
    """With what the gateway asks of it: lanes, senders, bearers of tokens, answers."""

    def __init__(self, open_log: Callable[[], Log], tokens: Tokens | None = None) -> None:
        super().__init__(open_log)
        self._tokens = tokens
        self._lanes: dict[str, int] = {}
        self._at_ms = 0
        self._answered_then: set[str] = set()

    @property
    def ready(self) -> bool:
        return self.caught_up.is_set()

    def fold(self, accepted: Accepted) -> None:
        at_ms = accepted.record.at
        if at_ms > self._at_ms:
            self._at_ms, self._answered_then = at_ms, set()
        for fact in accepted.facts():
            self.view.apply(fact.event)
            if isinstance(fact.event, CommandAccepted | CommandRefused):
                self._answered_then.add(fact.event.command_id)
        self._lanes = {name: pool.partition for name, pool in self.view.pools.items()}

    def has_folded_answer(self, command_id: str, at_ms: int) -> bool:
        """Has this gateway heard that answer, which access gave at that time? Its ledger's times
        never go back, and may stand still."""
        return at_ms < self._at_ms or command_id in self._answered_then

    def pools(self) -> Mapping[str, int]:
        """Lanes by pool."""
        return self._lanes

    def sender(self, tenant: str) -> Sender:
        """Also of an unknown tenant: it has no default pool."""
        return Sender(tenant, self.view.default_pool(tenant) or "")

    def is_live(self, bearer: Bearer) -> bool:
        """Would the same bearer still be let in? Streams ask, who began long ago."""
        if bearer.expires_s is not None:
            return self._knows(bearer.tenant) and now_ms() < bearer.expires_s * 1000
        return bearer.key_id in self.view.keys and bearer.key_id not in self.view.revoked

    async def bearer(self, authorization: str | None, at_least: Role) -> Bearer:
        """The sender of a request; raises a 401, 403 or 503 Refusal."""
        if not self.ready:
            raise unavailable("starting", "the access ledger is not read yet")
        scheme, _, text = (authorization or "").partition(" ")
        bearer = await self._who(text.strip()) if scheme.lower() == "bearer" else None
        if bearer is None:
            raise unauthenticated("send Authorization: Bearer <key_id>.<secret>")
        if not bearer.has_role(at_least):
            raise ForbiddenError(bearer, f"a {bearer.role} may not do this")
        if bearer.tenant is None and not bearer.has_role("operator"):
            raise ForbiddenError(bearer, "this key belongs to no tenant")
        return bearer

    async def _who(self, text: str) -> Bearer | None:
        if self._tokens is None or not is_token(text):
            return await self.authenticate(text)
        bearer = await self._tokens.bearer(text)
        if not self._knows(bearer.tenant):
            await self.catch_up()
        if not self._knows(bearer.tenant):
            raise ForbiddenError(bearer, "the token's tenant is not registered here")
        return bearer

    def _knows(self, tenant: str | None) -> bool:
        return tenant is None or tenant in self.view.tenants
