"""A shadow is compared with what is in effect on its view, and recorded without effect."""

from __future__ import annotations

import json

from services.placement.core.scheduled.request import answer_to, propose_now, request_of
from services.placement.core.scheduled.shadow import (
    beside_queue,
    beside_scheduler,
    compare,
    compared,
    note_shadow,
    request_of_shadow,
    shadow_of,
)
from shared.contracts.proposals import ProposalReady, ProposedGpus, ShadowReady
from shared.contracts.schedules import SHADOW_MOST, ShadowProposed
from shared.schedulers.hooks import Allotment
from shared.schedulers.view import CandidateJob, ClusterView, TypedNode
from tests.services.placement.core.lane import Lane, job, lane, only
from tests.services.placement.core.scheduled.pools import FAST, SLOW, typed

NODES = (TypedNode("f", FAST, 8), TypedNode("s", SLOW, 8))


def view_with(**held: tuple[tuple[str, int], ...]) -> ClusterView:
    jobs = tuple(
        CandidateJob(name, 0.0, 4, 1, 8, placement=placement) for name, placement in held.items()
    )
    return ClusterView(0.0, 0, 0, 360.0, jobs, NODES)


def gpus(job_id: str, gpu_type: str, count: int) -> ProposedGpus:
    return ProposedGpus(job_id=job_id, gpu_type=gpu_type, gpus=count)


def test_the_agreement_is_the_share_of_gpus_that_both_give_to_the_same_job_and_type() -> None:
    view = view_with(same=(("f", 4),), other=(("f", 4),), less=(), gone=(("s", 4),))
    in_effect = {
        "same": Allotment(FAST, 4),
        "other": Allotment(FAST, 4),
        "less": Allotment(SLOW, 4),
    }
    shadow = [gpus("same", FAST, 4), gpus("other", SLOW, 4), gpus("less", SLOW, 2)]
    own = compare(view, in_effect, shadow)
    assert (own.gpus, own.shadow_gpus) == (12, 10)
    assert own.agreement == round((4 + 2) / (4 + 8 + 4), 6)
    assert (own.starts, own.stops, own.changes) == (1, 1, 1)
    assert own.others == ("less", "other")


def test_two_that_give_nothing_agree_and_others_are_named_up_to_a_bound() -> None:
    assert compare(view_with(), {}, []).agreement == 1.0
    many = [gpus(f"j{number:03}", FAST, 1) for number in range(SHADOW_MOST + 9)]
    assert len(compare(view_with(), {}, many).others) == SHADOW_MOST


def answered(pool: Lane) -> ShadowReady:
    """The answer of the pool's shadow beside the proposal that is open, which is made."""
    open_ = pool.state.schedule.open
    assert open_ is not None
    acting = propose_now(pool.state)
    assert acting is not None
    seen = beside_scheduler(request_of(pool.state), acting, open_.at)
    pool.feed(pool.an("local", acting))
    request = request_of_shadow(pool.state, seen)
    return compared(request, seen, answer_to(request))


def test_a_shadow_sees_the_view_of_the_scheduler_in_effect_and_changes_nothing() -> None:
    pool = typed("fcfs", scheduler_shadow="gavel")
    pool.proposes = False
    pool.submit(job("one", 4, gpu_speeds={FAST: 4.0}), job("two", 4, gpu_speeds={FAST: 1.0}))
    message = answered(pool)
    before = (dict(pool.state.schedule.allotted), pool.state.schedule.number)
    (event,) = only(ShadowProposed, pool.feed(pool.an("local", message)))
    assert (event.scheduler, event.beside, event.number) == ("gavel", "fcfs", 1)
    assert event.until == message.viewed_at + 360_000
    assert (event.compared.gpus, event.compared.starts) == (8, 2)
    assert (dict(pool.state.schedule.allotted), pool.state.schedule.number) == before
    assert "shares" in json.loads(pool.state.shadow.memory), "it has a memory of its own"
    assert pool.state.schedule.memory == "{}"


def test_beside_the_ranked_queue_what_runs_is_in_effect() -> None:
    pool = lane("a", gpus=4, scheduler_shadow="afs")
    pool.run(job("one", 4))
    pool.submit(job("two", 2))
    seen = beside_queue(pool.state, pool.now)
    assert (seen.beside, seen.in_effect) == ("", {"one": Allotment("a100", 4)})
    request = request_of_shadow(pool.state, seen)
    assert (request.scheduler, request.queue) == ("afs", ("two",))
    (event,) = only(
        ShadowProposed, pool.feed(pool.an("local", compared(request, seen, answer_to(request))))
    )
    assert (event.refused, event.compared.gpus) == ("", 4)


def test_a_refused_proposal_in_effect_leaves_the_ranked_queue_beside() -> None:
    pool = typed("gavel", scheduler_shadow="fcfs")
    pool.proposes = False
    pool.submit(job("one", 4))
    refused = ProposalReady(at_seq=1, refused="scheduler gavel: nonsense")
    assert beside_scheduler(request_of(pool.state), refused, pool.now).beside == ""


def test_a_refused_shadow_keeps_its_memory_and_says_why() -> None:
    pool = typed("fcfs", scheduler_shadow="gavel")
    pool.state.shadow.memory = '{"kept": 1}'
    message = ShadowReady(scheduler="gavel", viewed_at=pool.now, refused="scheduler gavel: no")
    (decision,) = note_shadow(pool.state, message)
    event = decision.event
    assert isinstance(event, ShadowProposed)
    assert (event.memory, event.refused) == ('{"kept": 1}', "scheduler gavel: no")


def test_an_answer_of_another_shadow_is_dropped_and_a_change_drops_its_memory() -> None:
    pool = typed("fcfs", scheduler_shadow="gavel")
    message = ShadowReady(scheduler="gavel", viewed_at=pool.now, memory='{"own": 1}')
    pool.feed(pool.an("local", message))
    assert pool.state.shadow.memory == '{"own": 1}'
    pool.pool(scheduler="fcfs", scheduler_shadow="afs")
    assert (pool.state.shadow.memory, pool.state.shadow.number) == ("{}", 1)
    assert list(note_shadow(pool.state, message)) == []
    pool.pool(scheduler="fcfs")
    assert shadow_of(pool.state) is None
