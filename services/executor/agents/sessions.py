"""Sessions by node: a newer one replaces the older."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic

from services.executor.agents.refusal import Refused, unavailable
from services.executor.core.agents.state import OrderPosition
from shared.contracts.agents import MAX_ORDERS, Hello, Incarnation, Order, TerminalRequest
from shared.contracts.node_registry import JOIN_AGAIN

MAX_TERMINALS = 64
CLONED = "cloned_identity"
CLONED_WAIT_S = 15
WAIT_S = 1
"""s after which a newcomer tries again, while the other agent may be dead."""
MOST_NEWCOMERS = 10_000
COPY_GONE_S = 8.0 * CLONED_WAIT_S
"""s without a hello of a copy after which it is gone; it tries again each `CLONED_WAIT_S`."""
PROBLEMS_EVERY_S = 30.0
"""Least s between two reports of changed problems of one node, which an agent may alternate."""
LATELY_S = 120.0
"""Longer than a poll for orders and than the pause between two heartbeats."""
Ending = Callable[[], Refused]
"""Why sessions end: a new exception for each request, as one keeps the traceback of its raise."""

LIVE_HEARTBEATS, LONGEST_LIVE_S = 3, 60.0
"""A machine that restarts does not wait for longer, however rare its heartbeats are."""


def replaced() -> Refused:
    return Refused(409, "unknown_session", "session: replaced or unknown; send hello again")


def _in_use(old: Session, now_s: float, live_s: float) -> str:
    return (
        f"node {old.node_id}: another agent with its identity, at {old.origin.address}, was heard"
        f" {now_s - old.heard_s:.0f} s ago; this one is let in once it is silent for {live_s:g} s"
    )


def _cloned(old: Session, origin: Origin) -> str:
    return (
        f"node {old.node_id}: two agents live with its identity: {old.origin.address} has it and"
        f" goes on, {origin.address} is refused. Is its disk a copy, it joins anew: an operator"
        f" runs `berth nodes token --pool {old.pool}`, then there `berth-agent join URL --again"
        " --node-id NAME` and a restart of its agent. Is it the original, the copy at"
        f" {old.origin.address} is stopped first"
    )


def stopping() -> Refused:
    return unavailable("stopping", "executor: stopping; try the next one")


def revoked() -> Refused:
    return Refused(403, "node_revoked", f"node: revoked or replaced; {JOIN_AGAIN}")


def live_for_s(heartbeat_s: float) -> float:
    """Return the s without a heartbeat after which an agent may be dead."""
    return min(LIVE_HEARTBEATS * heartbeat_s, LONGEST_LIVE_S)


@dataclass(frozen=True, slots=True)
class Origin:
    """The process of an agent, and where it runs."""

    process: str = ""
    """Empty: of an agent of an earlier release."""
    boot_id: str = ""
    pid_namespace: str = ""
    network_namespace: str = ""
    """Empty: of an agent of an earlier release."""
    address: str = ""

    @classmethod
    def of(cls, hello: Hello, address: str) -> Origin:
        return cls(
            hello.process, hello.boot_id, hello.pid_namespace, hello.network_namespace, address
        )

    def may_follow(self, other: Origin) -> bool:
        """Return whether this may be the other process, or one that was started after its end.

        In one network namespace of a machine the agent itself sees to it that there is no second
        one: it holds an abstract socket.
        """
        if not self.process or not other.process or self.process == other.process:
            return True
        networks = {self.network_namespace, other.network_namespace} - {""}
        own, others = (self.boot_id, self.pid_namespace), (other.boot_id, other.pid_namespace)
        return own == others and len(networks) < 2


@dataclass(slots=True)
class Session:
    """A live session of one node; lost with the process, and opened anew by the agent."""

    session_id: str
    node_id: str
    pool: str
    incarnation: Incarnation
    next_report: int
    """Number of the next report; all before are durable."""
    confirmations: list[Order]
    """Orders that follow the hello, until a request shows that the agent has them."""
    answered_after: OrderPosition | None = None
    """Position in the request whose answer had the first confirmations, `MAX_ORDERS` at most."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    reporting: asyncio.Lock = field(default_factory=asyncio.Lock)
    ended: Ending | None = None
    version: str = ""
    """Version of the agent."""
    origin: Origin = field(default_factory=Origin)
    injects: bool = False
    """Whether the agent injects faults."""
    keeps_secrets: bool = False
    """Whether the agent takes values of secrets apart from the variables."""
    opens_terminals: bool = False
    """Whether the agent opens terminals in workers."""
    takes_bundles: bool = False
    """Whether the agent starts workers with the files of a bundle."""
    terminals: list[TerminalRequest] = field(default_factory=list)
    """Terminals to open, until the next answer to a poll."""
    heard_s: float = field(default_factory=monotonic)
    """Time of the last request, by the monotonic clock."""
    opened_s: float = field(default_factory=monotonic)
    problems_s: float = -math.inf
    """Time of the last report of problems."""

    def may_report_problems(self, now_s: float) -> bool:
        """Return whether a report is due again; it then counts as made."""
        if now_s - self.problems_s < PROBLEMS_EVERY_S:
            return False
        self.problems_s = now_s
        return True

    def room(self) -> int:
        """Return how many orders the next answer has room for, beside its confirmations."""
        return max(0, MAX_ORDERS - len(self.confirmations))

    def note_request(self, after: OrderPosition) -> None:
        """Drop the confirmations sent at a request from another position: the answer arrived."""
        if self.answered_after not in (None, after):
            self._drop_sent()

    def take_confirmations(self, after: OrderPosition) -> list[Order]:
        """Return the first confirmations for an answer to a request from that position.

        They are returned twice for a position: an agent whose connection broke repeats its request,
        which looks the same as the next poll of one that got no later position.
        """
        taken = self.confirmations[:MAX_ORDERS]
        if self.answered_after is None:
            self.answered_after = after
        else:
            self._drop_sent()
        return taken

    def _drop_sent(self) -> None:
        self.confirmations = self.confirmations[MAX_ORDERS:]
        self.answered_after = None

    def take_terminals(self) -> tuple[TerminalRequest, ...]:
        """Return the terminals to open, once: a user whose terminal is lost opens another one."""
        taken = tuple(self.terminals[:MAX_TERMINALS])
        del self.terminals[:MAX_TERMINALS]
        return taken

    def end(self, why: Ending) -> None:
        """Refuse all later requests, and those that wait."""
        self.ended = why
        self.wake.set()

    def check(self) -> None:
        """Raise why the session has ended, if it has."""
        if self.ended is not None:
            raise self.ended()


class Sessions:
    """The live sessions of an executor."""

    def __init__(self) -> None:
        self._of_node: dict[str, Session] = {}
        self._newcomers: OrderedDict[tuple[str, str], float] = OrderedDict()
        """Time of the first hello of a process that had to wait, by node and process."""
        self._copies: OrderedDict[str, tuple[str, float]] = OrderedDict()
        """Address and time of the last hello of a copy, by node."""

    def check_origin(
        self, node_id: str, origin: Origin, live_s: float, joined: Incarnation | None
    ) -> None:
        """Refuse a second agent with the identity of a node whose agent lives.

        One of the joined incarnation takes the session of an agent of another incarnation.
        The machine of a silent session may have been restarted: a newcomer waits until the other
        has said nothing for `live_s`, and is known as a copy once the other was heard meanwhile.
        """
        old, key = self._of_node.get(node_id), (node_id, origin.process)
        now_s = monotonic()
        if (
            old is None
            or (joined is not None and joined != old.incarnation)
            or origin.may_follow(old.origin)
            or now_s - old.heard_s >= live_s
        ):
            self._newcomers.pop(key, None)
            return
        first_s = self._newcomers.setdefault(key, now_s)
        if len(self._newcomers) > MOST_NEWCOMERS:
            self._newcomers.popitem(last=False)
        if old.heard_s <= first_s:
            raise Refused(409, "identity_in_use", _in_use(old, now_s, live_s), WAIT_S)
        self._copies[node_id] = origin.address, now_s
        self._copies.move_to_end(node_id)
        if len(self._copies) > MOST_NEWCOMERS:
            self._copies.popitem(last=False)
        raise Refused(409, CLONED, _cloned(old, origin), CLONED_WAIT_S)

    def copy_of(self, session: Session) -> str | None:
        """Return the two addresses of a node of which a copy lives; empty: none does.

        None while that is not known: a copy may try again, at first after a restart of the
        executor too.
        """
        address, tried_s = self._copies.get(session.node_id, ("", session.opened_s))
        if monotonic() - tried_s < COPY_GONE_S:
            return f"{session.origin.address} has it, {address} is refused" if address else None
        self._copies.pop(session.node_id, None)
        return ""

    def __len__(self) -> int:
        return len(self._of_node)

    def open(self, session: Session) -> None:
        old = self._of_node.get(session.node_id)
        self._of_node[session.node_id] = session
        if old is not None:
            session.problems_s = old.problems_s  # A new session is no way around the bound.
            old.end(replaced)

    def get(self, node_id: str, session_id: str) -> Session:
        """Return the session of the node; raises a 409 for any other id."""
        session = self._of_node.get(node_id)
        if session is None or session.session_id != session_id:
            raise replaced()
        session.check()
        session.heard_s = monotonic()
        return session

    def of_node(self, node_id: str) -> Session | None:
        """Return the live session of a node, None without one that was heard lately."""
        session = self._of_node.get(node_id)
        is_live = session is not None and monotonic() - session.heard_s < LATELY_S
        return session if is_live else None

    def count(self) -> Counter[tuple[str, str]]:
        """Return how many nodes were heard lately, by pool and version; any thread may call it."""
        now_s = monotonic()
        sessions = list(self._of_node.values())
        return Counter(
            (session.pool, session.version)
            for session in sessions
            if now_s - session.heard_s < LATELY_S
        )

    def wake(self, node_ids: Iterable[str]) -> None:
        """Let waiting polls of these nodes look for orders."""
        for node_id in node_ids:
            if (session := self._of_node.get(node_id)) is not None:
                session.wake.set()

    def end_all(self, why: Ending, node_ids: Iterable[str] | None = None) -> None:
        """End the sessions of these nodes, of all if None."""
        for node_id in list(self._of_node if node_ids is None else node_ids):
            if (session := self._of_node.pop(node_id, None)) is not None:
                session.end(why)
