"""Sends what is due; a slow or dead receiver delays no other one, and is tried by one at a time.

Of each webhook, and of the mails of each tenant, few are on their way at a time, and each attempt
has a limit in time. One that fails waits in the database for the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from random import SystemRandom
from time import monotonic_ns

from asyncpg import Connection, InterfaceError, PostgresError

from services.notifier import store
from services.notifier.core.mail import TARGET, message_of
from services.notifier.core.pace import DISABLE_MS, delay_ms, is_too_old
from services.notifier.core.signing import signature_headers
from services.notifier.senders import MailSender, Outcome, WebhookSender
from services.notifier.settings import NotifierSettings
from services.notifier.store import Due
from shared.bus.clock import now_ms
from shared.contracts.registry import AccessView
from shared.contracts.secrets import MAIL, SIGNING, SecretStored
from shared.http.rate import NS, Rate, TokenBuckets
from shared.ledger.cloudevents import CONTENT_TYPE
from shared.projections.database import terminate_after
from shared.secrets.secret_box import open_value
from shared.secrets.secret_keys import Forged, KeyMissing, KeysUnusable, SecretKeys

PER_TARGET = 2
"""Attempts at a time of a webhook, and of the mails of a tenant."""
IDLE_S = 1.0
ANSWER_S = 60.0
"""Limit of one database call."""
MAILS = Rate(0.2, 100)
"""Mails of one tenant: more of them wait."""
DATABASE_DOWN = (PostgresError, InterfaceError, OSError)
"""Errors that end the session: after them nothing can be stored."""
NO_SECRET = "its secret cannot be decrypted"

log = logging.getLogger(__name__)
Observe = Callable[[str, str], None]
JITTER = SystemRandom()


class Delivery:
    """Sends due notifications until cancelled; `observe` gets the kind and outcome of each."""

    def __init__(
        self,
        conn: Connection,
        view: AccessView,
        settings: NotifierSettings,
        mails: TokenBuckets,
        observe: Observe,
    ) -> None:
        self._conn = conn
        self._view = view
        self._settings = settings
        self._mails = mails
        self._observe = observe
        self._keys = None if settings.secret_keys is None else SecretKeys(settings.secret_keys)
        self._webhooks = WebhookSender(settings.networks)
        self._smtp = MailSender(settings)
        self._lock = asyncio.Lock()
        self._in_flight: dict[str, Due] = {}
        self.wake = asyncio.Event()

    async def run(self) -> None:
        """Deliver what is due until cancelled. Raises an error of Postgres."""
        try:
            async with asyncio.TaskGroup() as attempts:
                while True:
                    self.wake.clear()
                    busy = Counter(map(_place, self._in_flight.values()))
                    for item in await self._due(busy):
                        place = _place(item)
                        if busy[place] < (1 if item.probes else PER_TARGET):
                            busy[place] += 1
                            self._in_flight[item.key] = item
                            attempts.create_task(self._attempt(item))
                    try:
                        async with asyncio.timeout(IDLE_S):
                            await self.wake.wait()
                    except TimeoutError:
                        pass
        finally:
            await self._webhooks.close()
            await self._smtp.close()

    async def _due(self, busy: Counter[tuple[str, str]]) -> list[Due]:
        full = ["/".join(place) for place, count in busy.items() if count >= PER_TARGET]
        async with self._lock:
            with terminate_after(self._conn, ANSWER_S):
                return await store.read_due(self._conn, now_ms(), self._in_flight, full, PER_TARGET)

    async def _attempt(self, item: Due) -> None:
        try:
            if item.target.startswith(TARGET):
                await self._mail(item)
            else:
                await self._webhook(item)
        except DATABASE_DOWN:
            raise
        except Exception as error:
            log.exception("attempt failed")
            kind = "mail" if item.target.startswith(TARGET) else "webhook"
            await self._note(item, kind, Outcome(f"not sent: {type(error).__name__}"))
        finally:
            del self._in_flight[item.key]
            self.wake.set()

    async def _webhook(self, item: Due) -> None:
        hook = self._view.webhooks.get(item.tenant, item.target)
        if hook is None or item.at_ms < hook.created_at:
            await self._store(store.remove(self._conn, item))
            return
        outcome = await self._post(item, hook.url)
        if item.is_test:
            result = outcome.error or "delivered"
            await self._store(store.note_test(self._conn, item, result, not outcome.error))
            return
        since_ms = await self._note(item, "webhook", outcome)
        if outcome.is_final or (outcome.error and now_ms() - since_ms >= DISABLE_MS):
            await self._store(store.disable(self._conn, item, now_ms()))
            log.warning("webhook disabled", extra={"tenant": item.tenant, "webhook": item.target})

    async def _post(self, item: Due, url: str) -> Outcome:
        secret = await self._secret(item.tenant, SIGNING + item.target)
        if secret is None:
            return Outcome(NO_SECRET)
        body = item.body.encode()
        signed = signature_headers(secret, item.event_id, now_ms() // 1000, body)
        head = {**signed, "content-type": CONTENT_TYPE, "user-agent": "Berth"}
        return await outcome_of(self._webhooks.send(url, head, body))

    async def _mail(self, item: Due) -> None:
        user = item.target.removeprefix(TARGET)
        address = await self._secret(item.tenant, MAIL + user)
        domain = (address or "").rpartition("@")[2].lower()
        domains = self._settings.domains
        if (
            address is None
            or not self._view.is_active(item.tenant)
            or (domains and domain not in domains)
        ):
            await self._note(item, "mail", Outcome("no address that may get mails", is_final=True))
            return
        if wait_ns := self._mails.take(item.tenant, monotonic_ns()):
            later_ms = now_ms() + wait_ns * 1000 // NS + 1
            await self._store(store.postpone(self._conn, item, later_ms))
            return
        sender = self._settings.mail_from
        try:
            message = message_of(item.body, item.event_id, item.at_ms, sender, address)
        except Exception:  # The parser of headers raises more than ValueError.
            log.exception("mail not made")
            await self._note(item, "mail", Outcome("no valid address", is_final=True))
            return
        await self._note(item, "mail", await outcome_of(self._smtp.send(message, address)))

    async def _note(self, item: Due, kind: str, outcome: Outcome) -> int:
        """Store how an attempt went; return since when all of the target have failed, ms."""
        now = now_ms()
        if not outcome.error:
            await self._store(store.note_success(self._conn, item, now))
            self._observe(kind, "delivered")
            return now
        attempts = item.attempts + 1
        retry_at_ms = now + delay_ms(attempts, JITTER.random())
        is_over = outcome.is_final or is_too_old(item.at_ms, retry_at_ms)
        self._observe(kind, "given_up" if is_over else "failed")
        if is_over:
            extra = {"tenant": item.tenant, "target": item.target, "reason": outcome.error}
            log.warning("notification given up", extra=extra)
        retry_at = None if is_over else retry_at_ms
        async with self._lock:
            with terminate_after(self._conn, ANSWER_S):
                failure = await store.note_failure(self._conn, item, now, outcome.error, retry_at)
        for _ in range(failure.given_up):
            self._observe(kind, "given_up")
        return failure.since_ms

    async def _store(self, change: Coroutine[None, None, None]) -> None:
        async with self._lock:
            with terminate_after(self._conn, ANSWER_S):
                await change

    async def _secret(self, tenant: str, name: str) -> str | None:
        """Return the value of a secret of the tenant; None where there is none or no key for it."""
        stored: SecretStored | None = self._view.secrets.get(tenant, name)
        if stored is None or self._keys is None:
            return None
        try:
            return await asyncio.to_thread(open_value, self._keys, stored)
        except (KeysUnusable, KeyMissing, Forged):
            return None


async def outcome_of(attempt: Coroutine[None, None, Outcome]) -> Outcome:
    """Return the outcome; an error that no sender expects is one attempt's, and not the end of all
    others."""
    try:
        return await attempt
    except Exception as error:
        log.exception("attempt failed")
        return Outcome(f"not sent: {type(error).__name__}")


def _place(item: Due) -> tuple[str, str]:
    """Return the webhook, or for a mail all mails of its tenant."""
    return item.tenant, TARGET if item.target.startswith(TARGET) else item.target
