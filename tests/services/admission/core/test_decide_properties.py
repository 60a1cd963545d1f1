"""Inputs in any order: every command has one answer, no bound is exceeded, no job is lost."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import count
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from services.admission.core.evolve_pool import NODE_SETTLE_MS
from services.admission.core.state import Owner
from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.admission import QuotaChanged
from shared.contracts.attempts import (
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobResized,
    JobSucceeded,
)
from shared.contracts.base import Event
from shared.contracts.bounds import UserBounds
from shared.contracts.job_commands import CancelJob, SetQuota
from shared.contracts.placement import Allocation
from shared.contracts.users import UserDeleted, UserRegistered
from shared.ledger.decider import Fact, Input
from tests.harness.decider import an_input, run_facts
from tests.services.admission.core.cases import (
    ACME,
    ADMISSION,
    NODES,
    NOW,
    POOL,
    cancel,
    command,
    joined,
    lost,
    placed,
    submit,
)
from tests.services.admission.core.model import LedgerModel

TENANTS = st.sampled_from(["acme"] * 5 + ["beta"] * 4 + ["ghost"])
GPUS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 8.0, 16.0])
BOUND = st.sampled_from([0.0, 0.5, 1.0, 4.0, 16.0])
TIGHT = SetQuota(tenant="acme", guaranteed_gpus=2, borrow_gpus=2, spot_gpus=1)


class AdmissionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state = ADMISSION.initial(0)
        self.facts: list[Fact] = []
        self.model = LedgerModel()
        self.commands: dict[str, Input] = {}
        self.submits: list[Input] = []
        self.now = NOW
        self.names = count(1)

    def feed(self, *inputs: Input) -> None:
        for item in inputs:
            if item.source == "commands":
                self.commands[item.id] = item
        self.apply(run_facts(ADMISSION, self.state, inputs, self.now))
        self.drain()

    def drain(self) -> None:
        """Wake until nothing is due; each wake must lead to an event, or the shell would spin."""
        while (due := ADMISSION.next_wake(self.state)) is not None and due <= self.now:
            facts = run_facts(ADMISSION, self.state, [], self.now)
            assert facts
            self.apply(facts)

    def apply(self, facts: list[Fact]) -> None:
        self.facts += facts
        for fact in facts:
            self.model.apply(fact.event)

    def pick(self, data: st.DataObject, phase: str) -> str | None:
        job_ids = [job_id for job_id, p in self.model.phase.items() if p == phase]
        return data.draw(st.sampled_from(job_ids)) if job_ids else None

    @initialize(with_nodes=st.sampled_from([True, True, True, False]))
    def begin(self, with_nodes: bool) -> None:
        access: list[Event] = [POOL]
        access += [TenantRegistered(tenant=t, default_pool="main") for t in ("acme", "beta")]
        self.feed(*(an_input(event, "access") for event in access))
        self.feed(command(TIGHT))
        if with_nodes:
            self.feed(*(joined(node.node_id) for node in NODES.joined))

    @rule(
        data=st.data(),
        tenant=TENANTS,
        gpus=GPUS,
        workers=st.integers(1, 3),
        spot=st.booleans(),
        size=st.sampled_from([1, 1, 1, 3]),
        many=st.integers(1, 3),
        user=st.sampled_from(["unknown", "ada"]),
    )
    def submitted(self, data: Any, many: int, **fields: Any) -> None:
        tenant = fields["tenant"]
        mine = [j for j in self.model.phase if self.model.tenant[j] == tenant]
        depends = st.lists(st.sampled_from(mine or ["ghost"]), min_size=1, max_size=2)
        on = data.draw(depends) if mine and data.draw(st.integers(0, 2)) == 0 else []
        items = [submit(f"j{next(self.names)}", depends_on=on, **fields) for _ in range(many)]
        self.submits += items
        self.feed(*items)

    @rule(data=st.data(), new_id=st.booleans())
    def submitted_again(self, data: Any, new_id: bool) -> None:
        if self.submits:
            item = data.draw(st.sampled_from(self.submits))
            self.feed(command(item.message) if new_id else item)

    @rule(data=st.data(), phase=st.sampled_from(["deferred", "admitted", "over"]))
    def cancelled(self, data: Any, phase: str) -> None:
        job_id = self.pick(data, phase) or "ghost"
        self.feed(cancel(job_id, data.draw(st.sampled_from([None, "acme", "beta"]))))

    @rule(data=st.data(), tenant=st.sampled_from([None, None, "acme", "beta"]))
    def array_cancelled(self, data: Any, tenant: str | None) -> None:
        arrays = sorted(self.model.sizes)
        if arrays:
            self.feed(cancel(data.draw(st.sampled_from(arrays)), tenant))

    @rule(
        size=st.integers(2, 25), records=st.integers(0, 2), twice=st.booleans(), end=st.booleans()
    )
    def array_cancelled_while_it_is_made(
        self, size: int, records: int, twice: bool, end: bool
    ) -> None:
        """Ten of these jobs fill a record; the cancel comes before, among or after them."""
        name = f"j{next(self.names)}"
        array = submit(name, size=size, env={"filler": "x" * 8000}, gpus=0.25)
        if records:
            self.commands[array.id] = array
            self.apply(run_facts(ADMISSION, self.state, [array], self.now))
            for _ in range(records - 1):
                self.apply(run_facts(ADMISSION, self.state, [], self.now))
            cancels = [cancel(name, None), *([cancel(name, None)] if twice else [])]
            ends = [placed(JobSucceeded(job_id=f"{name}.0", tenant="acme", attempt=1), self.now)]
            self.feed(*cancels, *(ends if end else []))
        else:
            self.feed(array, cancel(name, None))

    @rule(data=st.data(), workers=st.integers(1, 4))
    def resized(self, data: Any, workers: int) -> None:
        job_id = self.pick(data, "admitted") or "ghost"
        target = (Allocation(rank=0, node_id="n1"),)
        self.feed(
            placed(
                JobResized(
                    job_id=job_id,
                    tenant="acme",
                    attempt=1,
                    reason="grow",
                    from_workers=1,
                    to_workers=workers,
                    target=target,
                ),
                self.now,
            )
        )

    @rule(data=st.data(), end=st.sampled_from([JobSucceeded, JobFailed, JobCancelled]))
    def ended(self, data: Any, end: Any) -> None:
        """Placement ends a job, as requested or not, or reports the end of one that is unknown."""
        job_id = self.pick(data, "admitted") or "ghost"
        more = {"reason": "exit_code"} if end is JobFailed else {}
        self.feed(placed(end(job_id=job_id, tenant="acme", attempt=1, **more), self.now))

    @rule(data=st.data())
    def cancelled_and_ended_at_once(self, data: Any) -> None:
        job_id = self.pick(data, "admitted")
        if job_id:
            end = JobSucceeded(job_id=job_id, tenant="acme", attempt=1)
            self.feed(cancel(job_id, None), placed(end, self.now), submit(f"j{next(self.names)}"))

    @rule(data=st.data(), attempt=st.integers(1, 5))
    def attempt_failed(self, data: Any, attempt: int) -> None:
        job_id = self.pick(data, "admitted")
        if job_id and job_id not in self.state.backoffs:
            failed = JobAttemptFailed(
                job_id=job_id, tenant="acme", attempt=attempt, node_ids=("n1",), reason="exit_code"
            )
            self.feed(placed(failed, self.now))

    @rule(tenant=TENANTS, guaranteed=BOUND, borrow=st.none() | BOUND, spot=st.none() | BOUND)
    def quota_set(self, tenant: str, guaranteed: float, borrow: Any, spot: Any) -> None:
        quota = SetQuota(
            tenant=tenant, guaranteed_gpus=guaranteed, borrow_gpus=borrow, spot_gpus=spot
        )
        self.feed(command(quota))

    @rule(bound=st.none() | BOUND)
    def user_bound(self, bound: float | None) -> None:
        event: Event = UserDeleted(tenant="acme", user="ada")
        if bound is not None:
            event = UserRegistered(tenant="acme", user="ada", bounds=UserBounds(max_gpus=bound))
        self.feed(an_input(event, "access"))

    @rule(spot=st.none() | BOUND)
    def pool_configured(self, spot: float | None) -> None:
        self.feed(an_input(POOL.model_copy(update={"spot_gpus": spot}), "access"))

    @rule(retired=st.booleans())
    def tenant_changed(self, retired: bool) -> None:
        beta = TenantRegistered(tenant="beta", default_pool="main")
        self.feed(an_input(TenantRetired(tenant="beta") if retired else beta, "access"))

    @rule(name=st.sampled_from(["n1", "n2", "n3"]), gpus=st.sampled_from([4, 8]))
    def node_joined(self, name: str, gpus: int) -> None:
        self.feed(joined(name, gpus))

    @rule(name=st.sampled_from(["n1", "n2", "n3"]), reason=st.sampled_from(["left", "silent"]))
    def node_lost(self, name: str, reason: str) -> None:
        self.feed(lost(name, reason))

    @rule(ms=st.sampled_from([1, 1000, NODE_SETTLE_MS]))
    def time_passed(self, ms: int) -> None:
        self.now += ms
        self.drain()

    @invariant()
    def no_job_is_lost(self) -> None:
        """Each job is in exactly one place: deferred in one queue, admitted, or ended."""
        state, waiting = self.state, self.state.waiting
        phases = self.model.phase
        assert set(state.deferred) == {j for j, p in phases.items() if p == "deferred"}
        assert set(state.admitted) == {j for j, p in phases.items() if p == "admitted"}
        assert all(state.ended.get(j) for j, p in phases.items() if p == "over")
        queues = (
            *waiting.quota_queues.values(),
            *waiting.spot_queues.values(),
            *waiting.oversized.values(),
            *waiting.user_queues.values(),
            *waiting.user_oversized.values(),
        )
        single = (waiting.awaiting_nodes, waiting.ready)
        job_ids = [job_id for queue in (*queues, *single) for job_id in queue]
        job_ids += {job_id for queue in waiting.dependents.values() for job_id in queue}
        assert sorted(job_ids) == sorted(state.deferred)
        assert not waiting.ready
        assert not state.expanding
        assert not state.cancelling
        assert not state.pending_answers

    @invariant()
    def each_command_has_one_answer_or_awaits_an_end(self) -> None:
        open_cancels = {c for job in self.state.admitted.values() for c, _ in job.cancels} | {
            c for array in self.state.arrays.values() for c, _ in array.cancels
        }
        assert set(self.model.array_cancels) <= open_cancels
        for command_id, item in self.commands.items():
            answered = self.model.answers[command_id]
            assert answered == (0 if command_id in open_cancels else 1), item.message
            assert command_id not in open_cancels or isinstance(item.message, CancelJob)

    @invariant()
    def open_jobs_are_those_that_have_not_ended(self) -> None:
        state, opened = self.state, Counter[Owner]()
        for array in state.arrays.values():
            opened[array.owner] += array.remaining
        for waiting in state.deferred.values():
            opened[waiting.owner] += waiting.array_index is None
        for admitted in state.admitted.values():
            opened[admitted.owner] += admitted.array_index is None
        assert state.open_jobs_of_users == +opened
        of_tenants = Counter[str]()
        for owner, jobs in opened.items():
            of_tenants[owner.tenant] += jobs
        assert state.open_jobs == +of_tenants

    @invariant()
    def quota_use_is_that_of_the_admitted_jobs(self) -> None:
        for tenant in ("acme", "beta"):
            for spot, used in (
                (False, self.state.quota_use.regular),
                (True, self.state.quota_use.spot),
            ):
                assert used.get(tenant, 0) == round(1000 * self.model.used(tenant, spot))
        assert self.state.quota_use.spot_total == sum(self.state.quota_use.spot.values())

    @invariant()
    def users_with_room_have_a_first_job_that_fits(self) -> None:
        """None is left: where a user has room its first job is judged, and waits elsewhere."""
        state = self.state
        used = Counter[Owner]()
        for admitted in state.admitted.values():
            used[admitted.owner] += admitted.gang_milli
        assert state.quota_use.of_users == +used
        assert not state.waiting.users_with_room
        for owner, queue in state.waiting.user_queues.items():
            first = state.deferred[next(iter(queue))].demand.gang_milli
            bounds = state.users[owner.tenant][owner.user]
            assert used[owner] + first > round(1000 * bounds.max_gpus)

    def teardown(self) -> None:
        """A replay of the facts equals the state; so does a snapshot."""
        again = ADMISSION.initial(0)
        for fact in self.facts:
            ADMISSION.evolve(again, fact)
        assert again == self.state
        assert pickle.loads(pickle.dumps(again)) == self.state


AdmissionMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestAdmissionMachine = AdmissionMachine.TestCase


def test_the_model_detects_a_broken_bound() -> None:
    """The model fails on a ledger that breaks a bound."""
    model = LedgerModel()
    model.apply(QuotaChanged(tenant="acme", guaranteed_gpus=1, borrow_gpus=0))
    state = ADMISSION.initial(0)
    for event in (POOL, ACME, NODES):
        ADMISSION.evolve(state, Fact(event, "admission", 0, 1, 0, NOW))
    facts = run_facts(ADMISSION, state, [submit("j1", gpus=2)], NOW + NODE_SETTLE_MS)
    try:
        for fact in facts:
            model.apply(fact.event)
    except AssertionError:
        return
    raise AssertionError("a job above its bound was not detected")
