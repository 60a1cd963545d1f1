"""Orders as a node gets them, with what the fold of placement lacks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from services.executor.agents.secrets import Secrets, without_separation
from services.executor.agents.sessions import Session
from services.executor.core.agents.injection import injection_of
from services.executor.core.agents.orders import OrderList
from services.executor.core.agents.state import AgentPool
from shared.contracts.agents import Launch, Order, Orders
from shared.contracts.failures import Failure

MAX_CHARS = 2**20
"""Characters of programs and variables after which an answer ends: an agent reads 32 MiB, and JSON
may have six bytes per character. The next request gets the rest."""


class OrderAnswers:
    """Completes orders: tenant's number, secrets, and the time that is left of a fault."""

    def __init__(self, number_of: Callable[[str], Awaitable[int | None]], secrets: Secrets) -> None:
        self._number_of = number_of
        self._secrets = secrets

    async def answer(
        self,
        session: Session,
        confirming: list[Order],
        state: AgentPool,
        listed: OrderList,
        now: int,
    ) -> Orders:
        """Return the orders; an agent of an earlier release gets none that it does not know.

        `now` is the time of the ledger, in ms.
        """
        through, new, chars = listed.through.position, list[Order](), 0
        for order in listed.orders:
            if order.kind == "inject" and not session.injects:
                continue
            if chars > MAX_CHARS:
                through = new[-1].position
                break
            new.append(await self._completed(order, session, state, now))
            chars += _chars_of(new[-1])
        writer = state.writer_of(through.seq)
        return Orders(
            orders=(*confirming, *new),
            through=through,
            writer=writer,
            terminals=session.take_terminals(),
        )

    async def _completed(self, order: Order, session: Session, state: AgentPool, now: int) -> Order:
        if order.kind == "inject":
            injection = injection_of(state.nodes.get(session.node_id), now)
            return order.model_copy(update={"injection": injection})
        if order.launch is None:
            return order
        if order.launch.bundle and not session.takes_bundles:
            return order.model_copy(update={"launch": _without_files(order.launch, session)})
        number = await self._number_of(order.launch.tenant)
        launch = order.launch.model_copy(update={"tenant_number": number})
        launch = await self._secrets.resolve(launch)
        if not session.keeps_secrets:
            launch = without_separation(launch)
        return order.model_copy(update={"launch": launch})


def _without_files(launch: Launch, session: Session) -> Launch:
    """Return a launch that fails: an agent of an earlier release would start it in an empty folder,
    and its label, which is that of its registration, may be that of a later one."""
    detail = f"bundle: agent {session.version} of this node takes none; upgrade it"
    failure = Failure(reason="bundle_unreachable", detail=detail)
    return launch.model_copy(update={"env": {}, "failure": failure})


def _chars_of(order: Order) -> int:
    """Return the characters of what a tenant gave for the worker."""
    if order.launch is None:
        return 0
    launch = order.launch
    texts = (*launch.command, *launch.env, *launch.env.values(), *launch.secrets.values())
    return sum(map(len, texts))
