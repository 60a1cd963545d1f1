"""The causal order of a replay: a job is learnt from only once it has ended."""

from __future__ import annotations

from benchmarks.parts.prediction.jobs import read_history


def test_every_end_comes_once_and_never_before_it_happened() -> None:
    jobs = read_history("synthetic:philly")
    learnt: list[int] = []
    for at, (ended, job) in enumerate(jobs.steps()):
        assert job == at
        assert all(jobs.submit_s[one] + jobs.ran_s[one] <= jobs.submit_s[job] for one in ended)
        learnt += ended
    assert len(set(learnt)) == len(learnt) > len(jobs) / 2
    missed = set(range(len(jobs))) - set(learnt)
    assert all(jobs.submit_s[one] + jobs.ran_s[one] > jobs.submit_s[-1] for one in missed)


def test_the_judged_window_is_the_last_part_and_nothing_of_it_is_known_before() -> None:
    jobs = read_history("synthetic:philly")
    begin_s = jobs.submit_s[jobs.judged].min()
    assert begin_s >= jobs.submit_s[0] + 0.6 * (jobs.submit_s[-1] - jobs.submit_s[0])
    known = jobs.known_before_judgement()
    assert known.any() and not (known & jobs.judged).any()
