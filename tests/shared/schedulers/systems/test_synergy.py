from __future__ import annotations

from typing import Any

from shared.schedulers.check import check
from shared.schedulers.compose import Proposal, propose
from shared.schedulers.host_shares.sensitivity import PerGpu, Sensitivity
from shared.schedulers.systems.synergy import Synergy
from shared.schedulers.view import CandidateJob, Estimates, TypedNode
from tests.shared.schedulers.views import job, on, view

NODE = TypedNode("n1", "v", 2, "", 0.0, 8_000, 100_000)
"""A part of 4 cores and 50,000 MiB for each GPU."""
PART = PerGpu(4_000, 50_000)
IMAGE = Sensitivity((4_000, 7_000), (50_000,), ((1.0,), (2.0,)))
LANGUAGE = Sensitivity((1_000,), (20_000,), ((1.0,),))


def of(name: str, own: Sensitivity | None, **fields: Any) -> CandidateJob:
    return job(name, estimates=Estimates("oracle", sensitivity=own), **fields)


def proposed(*jobs: CandidateJob) -> Proposal:
    now = view(jobs, (NODE,), 10.0)
    proposal = propose(Synergy(), now, {})
    check(now, proposal)
    return proposal


def test_cores_that_one_job_does_not_need_speed_up_another() -> None:
    proposal = proposed(of("image", IMAGE), of("language", LANGUAGE))
    assert proposal.placements == {"image": on("n1"), "language": on("n1")}
    assert proposal.host_shares == {
        "image": PerGpu(7_000, 50_000),
        "language": PerGpu(1_000, 20_000),
    }


def test_no_job_has_less_than_its_part_where_all_need_more() -> None:
    assert proposed(of("a", IMAGE), of("b", IMAGE)).host_shares == {"a": PART, "b": PART}


def test_a_job_of_which_nothing_is_known_gets_its_part() -> None:
    assert proposed(of("a", None)).host_shares == {"a": PART}


def test_order_is_by_submission_and_a_job_that_runs_has_no_precedence() -> None:
    old = [of(name, LANGUAGE, submit_s=at) for name, at in (("a", 1.0), ("b", 2.0))]
    late = of("late", LANGUAGE, submit_s=3.0, placement=on("n1"))
    assert set(proposed(*old, late).placements) == {"a", "b"}


def test_a_job_that_may_not_be_stopped_keeps_its_cores() -> None:
    fixed = of(
        "fixed", IMAGE, preemptible=False, placement=on("n1"), host_share=PerGpu(7_000, 50_000)
    )
    proposal = proposed(fixed, of("image", IMAGE), of("language", LANGUAGE))
    assert proposal.host_shares["fixed"] == PerGpu(7_000, 50_000)
    assert proposal.host_shares["image"] == PerGpu(1_000, 50_000), "what the node has left"
