"""The peers that one job may stop do not depend on those that another one asked for before."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import shape_of
from services.placement.core.round.peers import Peers, RankRules
from services.placement.core.round.protection import Protection
from shared.contracts.job_spec import Gang, JobSpec

NOW = 1_000_000
SPEC = JobSpec(name="j", gang=Gang(workers=1, gpus_per_worker=1))
JOB = Job("", "t", 0, None, SPEC, shape_of(SPEC), 1, 1, 0)
SCORES = st.floats(-5, 5).map(lambda score: round(score, 1))


def running(name: str, ago_ms: int, gpus: float = 1.0) -> Job:
    return replace(JOB, job_id=name, phase="running", started_at=NOW - ago_ms, gpus=gpus)


@given(
    st.lists(st.tuples(SCORES, st.integers(1, 200)), max_size=12),
    st.lists(SCORES, min_size=1, max_size=6),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_each_job_gets_the_peers_that_it_outranks(
    peers: list[tuple[float, int]], waiting: list[float], margin: float
) -> None:
    jobs = {f"r{at}": running(f"r{at}", ago_ms) for at, (_, ago_ms) in enumerate(peers)}
    scores = {f"r{at}": score for at, (score, _) in enumerate(peers)}
    scores |= {f"w{at}": score for at, score in enumerate(waiting)}
    asked = Peers(jobs, RankRules(scores, margin, Protection(100, 1.0), 8.0), NOW)
    for at, score in enumerate(waiting):
        job = replace(JOB, job_id=f"w{at}")
        led = [name for name in jobs if scores[name] + margin < score]
        stoppable = [name for name in led if jobs[name].started_at + 100 <= NOW]
        expected = sorted(stoppable, key=lambda name: (scores[name], name))
        assert [outranked.job_id for outranked in asked.outranked_by(job)] == expected
        assert asked.outranks_any(job) == bool(expected)
        ends = [jobs[name].started_at + 100 for name in led if name not in stoppable]
        assert sorted(peer.until_ms for peer in asked.protected_from(job)) == sorted(ends)


def test_a_job_without_a_score_outranks_none_and_a_large_gang_is_not_stopped() -> None:
    jobs = {"large": running("large", 500, gpus=16.0), "small": running("small", 500)}
    peers = Peers(jobs, RankRules({"w": 1.0}, 0.0, Protection(100, 1.0), 8.0), NOW)
    assert peers.outranked_by(replace(JOB, job_id="unranked")) == []
    outranked = peers.outranked_by(replace(JOB, job_id="w"))
    assert [peer.job_id for peer in outranked] == ["small"]
