from __future__ import annotations

import random
from functools import cache

import pytest

from shared.schedulers.virtual_machine import Arrival, advance


def least_sum_s(jobs: list[Arrival]) -> int:
    """Return the least sum of ends of any preemptive schedule of whole seconds, by trying all."""

    @cache
    def rest(now_s: int, left: tuple[int, ...]) -> int:
        if not any(left):
            return 0
        ready = [n for n, own in enumerate(left) if own and jobs[n].at_s <= now_s]
        if not ready:
            return rest(now_s + 1, left)
        sums = []
        for number in ready:
            after = tuple(own - (n == number) for n, own in enumerate(left))
            sums.append(rest(now_s + 1, after) + (now_s + 1 if not after[number] else 0))
        return min(sums)

    return rest(0, tuple(int(job.needs_s) for job in jobs))


@pytest.mark.parametrize("seed", range(25))
def test_no_order_has_a_smaller_sum_of_ends(seed: int) -> None:
    rng = random.Random(seed)
    jobs = [
        Arrival(float(rng.randrange(6)), f"j{number}", float(rng.randint(1, 4)))
        for number in range(rng.randint(1, 4))
    ]
    ended, rest_s = advance({}, jobs, 0.0, 100.0)
    assert rest_s == {}
    assert sum(end_s for _, end_s in ended) == least_sum_s(jobs)


def test_it_advances_in_steps_as_in_one() -> None:
    jobs = [Arrival(0.0, "long", 10.0), Arrival(3.0, "short", 2.0), Arrival(4.0, "mid", 5.0)]
    assert advance({}, jobs, 0.0, 20.0).ended == [("short", 5.0), ("mid", 10.0), ("long", 17.0)]
    ended, rest_s = advance({}, jobs[:1], 0.0, 3.0)
    assert (ended, rest_s) == ([], {"long": 7.0})
    ended, rest_s = advance(rest_s, jobs[1:], 3.0, 9.0)
    assert (ended, rest_s) == ([("short", 5.0)], {"long": 7.0, "mid": 1.0})
    ended, rest_s = advance(rest_s, [], 9.0, 17.0)
    assert (ended, rest_s) == ([("mid", 10.0), ("long", 17.0)], {})


def test_an_idle_machine_waits_for_the_next_job() -> None:
    assert advance({}, [Arrival(5.0, "a", 1.0)], 0.0, 5.5) == ([], {"a": 0.5})
    assert advance({}, [], 0.0, 5.0) == ([], {})
