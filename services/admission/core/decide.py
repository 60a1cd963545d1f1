"""Admission's decider: which job may enter its pool's queue, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.admission.core.cancel import cancel
from services.admission.core.evolve import evolve
from services.admission.core.notes import note
from services.admission.core.restate import restate
from services.admission.core.settle import BUDGET_BYTES, due, settle
from services.admission.core.state import Pool
from services.admission.core.submit import submit
from shared.contracts.base import Command
from shared.contracts.jobs import CancelJob, QuotaChanged, RejectSubmission, SetQuota, SubmitJob
from shared.contracts.rejected import InputRejected
from shared.contracts.topics import CONSUMED_EVENTS
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Fact, Input, Undecodable


class Admission:
    """One pool's gate; see `Decider`.

    Between inputs of different topics there is no order. This is ours: who may do what, then what
    placement freed, then who waited for it, and only then who comes anew.
    """

    ledger = "admission"
    hears = CONSUMED_EVENTS["admission"]

    def initial(self, partition: int) -> Pool:
        return Pool(partition)

    def decide(self, state: Pool, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        yield from restate(state, [item for item in inputs if item.source == "access"])
        yield from note(state, [item for item in inputs if item.source == "placement"], now)
        spent = yield from settle(state, now, BUDGET_BYTES)
        for item in inputs:
            match item.message:
                case Command() as wish:
                    yield from obey(state, item, wish, now)
                case Undecodable() as bad:
                    yield item.leads_to(bad.rejected())
        yield from settle(state, now, BUDGET_BYTES - spent)

    def evolve(self, state: Pool, fact: Fact) -> None:
        evolve(state, fact)

    def next_wake(self, state: Pool) -> int | None:
        return due(state)


def obey(state: Pool, item: Input, wish: Command, now: int) -> Iterator[Decision]:
    if not state.answered.is_due(item, "admission"):
        return
    match wish:
        case SubmitJob():
            yield from submit(state, item, wish, now)
        case CancelJob():
            yield from cancel(state, item, wish)
        case SetQuota():
            yield from set_quota(state, item, wish)
        case RejectSubmission():
            yield from reject_submission(item, wish)


def set_quota(state: Pool, item: Input, wish: SetQuota) -> Iterator[Decision]:
    """A tenant that is not known yet may have one: its registration may be on its way."""
    if state.pool is None:
        detail = f"partition: {state.partition}: belongs to no pool"
        yield refuse_command(item, wish.tenant, "unknown_pool", detail)
        return
    event = QuotaChanged(
        tenant=wish.tenant,
        guaranteed_gpus=wish.guaranteed_gpus,
        borrow_gpus=wish.borrow_gpus,
        spot_gpus=wish.spot_gpus,
    )
    same = event == state.quotas.get(wish.tenant)
    yield accept_command(item, wish.tenant, duplicate=same)
    if not same:
        yield item.leads_to(event)


def reject_submission(item: Input, wish: RejectSubmission) -> Iterator[Decision]:
    of = f"{wish.topic}/{wish.partition}/{wish.offset}"
    yield accept_command(item, of, tenant=wish.tenant)
    yield item.leads_to(
        InputRejected(
            topic=wish.topic,
            partition=wish.partition,
            offset=wish.offset,
            reason=wish.reason,
            sha256=wish.sha256,
            tenant=wish.tenant,
        )
    )
