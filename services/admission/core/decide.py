"""Admission's decider: admits, defers or rejects the jobs submitted to one pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.admission.core.cancel import cancel_job
from services.admission.core.evolve import evolve
from services.admission.core.from_failslow import check_failslow
from services.admission.core.reconsider import BUDGET_BYTES, next_due, reconsider
from services.admission.core.restate_placement import restate_placement
from services.admission.core.state import AdmissionState
from services.admission.core.submit import submit_job
from services.admission.core.transfer import transfer_job
from shared.contracts.admission import QuotaChanged
from shared.contracts.base import Command
from shared.contracts.job_commands import CancelJob, RejectSubmission, SetQuota, SubmitJob
from shared.contracts.pools import PoolConfigured, PoolDeleted
from shared.contracts.rejected import InputRejected
from shared.contracts.settings_version import version_of
from shared.contracts.topics import CONSUMED_EVENTS
from shared.contracts.transfers import TransferJob
from shared.contracts.updates import UpdateQuota
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.clock_steps import note_steps
from shared.ledger.decider import Decision, Fact, Input, Undecodable
from shared.ledger.restate import restate_settings, restate_tenants, restate_users


class Admission:
    """The admission of one pool; see `Decider`.

    Inputs of different topics have no order between them. This one is ours: permissions, then
    what placement freed, then the jobs that waited for it, and only then new commands.
    """

    ledger = "admission"
    consumed_events = CONSUMED_EVENTS["admission"]

    def initial(self, partition: int) -> AdmissionState:
        return AdmissionState(partition)

    def decide(
        self, state: AdmissionState, inputs: Sequence[Input], now: int
    ) -> Iterator[Decision]:
        yield from note_steps(inputs, state.pool, self.ledger, now)
        if access := [item for item in inputs if item.source == "access"]:
            known = state.deleted or state.pool
            kinds = (PoolConfigured, PoolDeleted)
            yield from restate_settings(access, kinds, state.partition, known)
            yield from restate_tenants(access, state.tenants.get, with_bounds=True)
            yield from restate_users(access, state.users)
        if placement := [item for item in inputs if item.source == "placement"]:
            yield from restate_placement(state, placement, now)
        spent = yield from reconsider(state, now, BUDGET_BYTES)
        for item in inputs:
            match item.message:
                case Command() as command if state.answered.is_due(item, self.ledger):
                    yield from execute(state, item, command, now)
                case Undecodable() as undecodable:
                    yield item.decision(undecodable.rejection())
        yield from reconsider(state, now, BUDGET_BYTES - spent)

    def evolve(self, state: AdmissionState, fact: Fact) -> None:
        evolve(state, fact)

    def next_wake(self, state: AdmissionState) -> int | None:
        return next_due(state)


def execute(state: AdmissionState, item: Input, command: Command, now: int) -> Iterator[Decision]:
    if refusal := check_failslow(state, item, command):
        yield refuse_command(item, *refusal)
        return
    match command:
        case SubmitJob():
            yield from submit_job(state, item, command, now)
        case CancelJob():
            yield from cancel_job(state, item, command)
        case TransferJob():
            yield from transfer_job(state, item, command)
        case SetQuota():
            yield from set_quota(state, item, command)
        case UpdateQuota():
            yield from update_quota(state, item, command)
        case RejectSubmission():
            yield from reject_submission(item, command)


def set_quota(state: AdmissionState, item: Input, command: SetQuota) -> Iterator[Decision]:
    """Set a tenant's quota, also before its registration is read."""
    if state.pool is None:
        detail = f"partition: {state.partition}: belongs to no pool"
        yield refuse_command(item, command.tenant, "unknown_pool", detail)
        return
    event = QuotaChanged(**command.model_dump(exclude={"if_version"}))
    yield from change_quota(state, item, event, command.if_version)


def update_quota(state: AdmissionState, item: Input, command: UpdateQuota) -> Iterator[Decision]:
    """Change the named bounds of a tenant's quota and keep the others."""
    existing, changes = state.quotas.get(command.tenant), command.changes()
    if state.pool is None:
        detail = f"partition: {state.partition}: belongs to no pool"
        yield refuse_command(item, command.tenant, "unknown_pool", detail)
    elif existing is not None:
        event = existing.model_copy(update=changes)
        yield from change_quota(state, item, event, command.if_version)
    elif "guaranteed_gpus" in changes:
        event = QuotaChanged(tenant=command.tenant, **changes)
        yield from change_quota(state, item, event, command.if_version)
    else:
        detail = f"guaranteed_gpus: absent: {command.tenant} has no quota yet; name it"
        yield refuse_command(item, command.tenant, "quota_incomplete", detail)


def change_quota(
    state: AdmissionState, item: Input, event: QuotaChanged, if_version: str | None
) -> Iterator[Decision]:
    """Set a quota, unless it is based on another version than that of the present one."""
    existing = state.quotas.get(event.tenant)
    duplicate, version = event == existing, version_of(existing)
    if not duplicate and if_version not in (None, version):
        rule = f"the quota has version {version}; read it again and repeat the change"
        detail = f"if_version: {if_version!r}: {rule}"
        yield refuse_command(item, event.tenant, "version_conflict", detail)
        return
    yield accept_command(item, event.tenant, duplicate=duplicate)
    if not duplicate:
        yield item.decision(event)


def reject_submission(item: Input, command: RejectSubmission) -> Iterator[Decision]:
    of = f"{command.topic}/{command.partition}/{command.offset}"
    yield accept_command(item, of, tenant=command.tenant)
    yield item.decision(
        InputRejected(
            topic=command.topic,
            partition=command.partition,
            offset=command.offset,
            reason=command.reason,
            sha256=command.sha256,
            tenant=command.tenant,
        )
    )
