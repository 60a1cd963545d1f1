"""The session with an executor: threads for orders and heartbeats."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from berth_agent.core.backoff import Backoff
from berth_agent.messages import (
    HEARTBEAT_PATH,
    HELLO_PATH,
    ORDERS_PATH,
    Heartbeat,
    Orders,
    OrdersRequest,
    Terms,
    Welcome,
)
from berth_agent.node.agent import Agent
from berth_agent.node.connection.http import ENDED, Connection, RequestFailed, parse_address
from berth_agent.node.credentials.executor_access import UNAUTHENTICATED
from berth_agent.node.credentials.renewal import Credentials
from berth_agent.node.executor.terminals import NodeTerminals

ORDERS_WAIT_S = 20.0
REFUSED_S = 15.0
"""Least wait after a refusal that another attempt does not change by itself."""
LEAST_HEARTBEAT_S = 0.2
REQUEST_S = (0.5, 120.0)
RECONNECT_S = (0.1, 300.0)
LEAST_STOP_AFTER_S = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that an executor opened; the connection is that of the orders."""

    url: str
    session_id: str
    orders: Connection


class SessionLoop:
    """Keeps one session open with one of the executors; the others wait for it."""

    def __init__(self, agent: Agent, credentials: Credentials) -> None:
        self.problem = "not connected yet"
        """Why there is no session; empty while there is one."""
        self.stopping = threading.Event()
        self._agent = agent
        self._credentials = credentials
        self._session: OpenSession | None = None
        self._last_url = ""
        """Address of the last session, tried also if the executors name others."""
        self._terminals = NodeTerminals(agent)
        self._opened = threading.Condition()
        self._place = 0

    @property
    def session(self) -> OpenSession | None:
        return self._session

    def start(self) -> None:
        """Start the threads; they end with the process, or by `stop`."""
        for target in (self._keep_session, self._send_heartbeats):
            threading.Thread(target=guarded(target), daemon=True, name=target.__name__).start()

    def stop(self) -> None:
        self.stopping.set()
        self.drop(self._session, "stopping")

    def connect(self, url: str) -> Connection:
        access = self._credentials.access()
        return Connection(parse_address(url), access.tls, access.credential)

    def request_s(self) -> float:
        """Return the limit of a request, s: terms of a wrong server have no power over it."""
        return _within(self._agent.incarnations.terms.request_timeout_s, REQUEST_S)

    def wait_for_session(self) -> OpenSession | None:
        """Wait until there is a session; None once the agent stops."""
        with self._opened:
            while self._session is None and not self.stopping.is_set():
                self._opened.wait(1.0)
            return None if self.stopping.is_set() else self._session

    def drop(self, session: OpenSession | None, why: str) -> None:
        """End a session, unless a newer one is open."""
        with self._opened:
            if session is None or self._session is not session:
                return
            self._session = None
            self.problem = why
        session.orders.end()
        self._agent.session_lost()

    def _keep_session(self) -> None:
        backoff = Backoff()
        while not self.stopping.is_set():
            if self._agent.has_left:
                self.stopping.wait(0.5)
                continue
            wait_s = 0.0
            for _ in range(max(1, len(self._urls()))):
                try:
                    self._serve(backoff)
                except RequestFailed as failure:
                    self.note(failure)
                    wait_s = max(wait_s, failure.retry_after_s, _least_wait_s(failure))
                    self._place += 0 if failure.status == 409 else 1
                if self.stopping.is_set():
                    return
            longest_s = _within(self._agent.incarnations.terms.reconnect_s, RECONNECT_S)
            # No chance of a core: a wait between attempts.
            chance = random.random()  # noqa: TID251
            self.stopping.wait(max(wait_s, backoff.next_s(longest_s, chance)))

    def _serve(self, backoff: Backoff) -> None:
        """Open a session with the next executor and take orders. Raises RequestFailed."""
        access, urls = self._credentials.access(), self._urls()
        if not urls:
            raise RequestFailed(0, "no_executor", "no address of an executor is known")
        url = urls[self._place % len(urls)]
        connection = Connection(parse_address(url), access.tls, access.credential)
        session: OpenSession | None = None
        try:
            welcome = self._greet(connection, access.credential)
            step = self._agent.welcome(welcome)
            if step == "again":
                return
            session = OpenSession(url, welcome.session_id, connection)
            self._open(session)
            if step == "behind":
                # Heartbeats are relayed all the same; orders may come from another executor.
                self.stopping.wait(1.0)
                raise RequestFailed(503, "behind", f"{url}: its ledger is not read to the end")
            backoff.reset()
            log.info("executor: session with %s", url)
            self._take_orders(session)
        except OSError as error:
            raise RequestFailed(0, "disk", str(error)) from None
        finally:
            self.drop(session, self.problem or "the session ended; another one is opened")
            connection.close()

    def _greet(self, connection: Connection, credential: str) -> Welcome:
        """Send the hello and return its answer. Raises RequestFailed."""
        hello = self._agent.hello()
        try:
            welcome = connection.post(HELLO_PATH, hello, Welcome, self.request_s())
        except RequestFailed as failure:
            if failure.status == UNAUTHENTICATED:
                self._credentials.note_refused(credential)
            raise
        _check_terms(welcome.terms)
        self._credentials.use_executors(welcome.executors)
        self._credentials.use_installation(welcome.installation)
        return welcome

    def _urls(self) -> tuple[str, ...]:
        """Return the addresses to try; wrong new ones do not part the node from its executor."""
        urls = self._credentials.access().urls
        return urls if self._last_url in ("", *urls) else (*urls, self._last_url)

    def _open(self, session: OpenSession) -> None:
        with self._opened:
            self._session, self._last_url = session, session.url
            self.problem = ""
            self._opened.notify_all()

    def _take_orders(self, session: OpenSession) -> None:
        """Poll until the session ends, or a new incarnation needs another one."""
        agent = self._agent
        while self._session is session and not self.stopping.is_set():
            if agent.needs_hello or agent.has_left:
                return
            if not agent.takes_orders():
                # Only reports of the ends are sent until the next incarnation begins.
                self.stopping.wait(0.05)
                continue
            request = OrdersRequest(
                session_id=session.session_id, after=agent.book.applied, wait_s=ORDERS_WAIT_S
            )
            limit_s = ORDERS_WAIT_S + self.request_s()
            answer = session.orders.post(ORDERS_PATH, request, Orders, limit_s)
            agent.take_orders(answer)
            for terminal in answer.terminals:
                self._terminals.open(
                    terminal, session.url, self._credentials.access(), session.session_id
                )

    def _send_heartbeats(self) -> None:
        while (session := self.wait_for_session()) is not None:
            connection = self.connect(session.url)
            try:
                while self._session is session and not self.stopping.is_set():
                    sent_s = monotonic()
                    self._send_heartbeat(session, connection)
                    self.stopping.wait(max(0.0, sent_s + self._heartbeat_s() - monotonic()))
            except RequestFailed as failure:
                self.note(failure)
                self.drop(session, str(failure))
            finally:
                connection.close()

    def _heartbeat_s(self) -> float:
        """Return the time until the next heartbeat: shorter by up to a tenth, by chance, since
        agents that were acknowledged together would send together for ever."""
        seconds = max(LEAST_HEARTBEAT_S, min(60.0, self._agent.incarnations.terms.heartbeat_s))
        return seconds * random.uniform(0.9, 1.0)

    def _send_heartbeat(self, session: OpenSession, connection: Connection) -> None:
        heartbeat = self._agent.heartbeat(session.session_id)
        if heartbeat is None:
            return
        connection.exchange(HEARTBEAT_PATH, heartbeat.to_json(), self.request_s())
        self._acknowledge(heartbeat)

    def _acknowledge(self, heartbeat: Heartbeat) -> None:
        try:
            self._agent.heartbeat_acknowledged(heartbeat)
        except OSError as error:
            # The steps keep their deadline, and end at it unless the next one can be written.
            log.error("the lease cannot be written: %s", error)

    def note(self, failure: RequestFailed) -> None:
        """Show the failure as the present problem; one that goes on is logged once.

        A request that ended with its session is none: why that ended is shown already.
        """
        if failure.reason == ENDED:
            return
        if str(failure) != self.problem:
            log.warning("executor: %s", failure)
        self.problem = str(failure)


def guarded(target: Callable[[], None]) -> Callable[[], None]:
    """Return a thread's body that is begun again after an unexpected error."""

    def run() -> None:
        while True:
            try:
                target()
            except Exception:
                log.exception("a thread of the agent failed")
                threading.Event().wait(REFUSED_S)
            else:
                return

    return run


def _least_wait_s(failure: RequestFailed) -> float:
    """Return the wait after refusals of the node itself; it keeps trying, as rights come back."""
    return REFUSED_S if failure.status in (400, 401, 403, 404, 413) else 0.0


def _check_terms(terms: Terms) -> None:
    """Refuse terms under which no worker could live. Raises RequestFailed."""
    if terms.stop_after_s is not None and terms.stop_after_s < LEAST_STOP_AFTER_S:
        detail = f"stop_after_s: {terms.stop_after_s}; at least {LEAST_STOP_AFTER_S} is allowed"
        raise RequestFailed(400, "malformed_terms", detail)


def _within(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
