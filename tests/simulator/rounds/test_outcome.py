from __future__ import annotations

from simulator.rounds.outcome import RoundsJobOutcome, RoundsOutcome


def test_means_are_of_jobs_that_ended() -> None:
    jobs = [
        RoundsJobOutcome("a", 10.0, 20.0, 40.0, 0, 20.0),
        RoundsJobOutcome("b", 10.0, 20.0, 60.0, 1, 40.0),
        RoundsJobOutcome("c", 10.0, None, None, 0, 0.0),
    ]
    outcome = RoundsOutcome(jobs)
    assert (outcome.mean_jct_s(), outcome.mean_jct_s({"b"})) == (40.0, 50.0)
    assert (outcome.unfinished, outcome.makespan_s) == (1, 50.0)
