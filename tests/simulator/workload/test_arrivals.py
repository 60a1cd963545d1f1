from __future__ import annotations

from itertools import islice
from random import Random

from simulator.workload.arrivals import START_S, arrivals_s


def test_one_unit_of_work_is_one_gap_at_the_mean_rate() -> None:
    arrivals = arrivals_s(lambda: 1.0, (1.0,) * 24, mean_gap_s=600.0)
    assert list(islice(arrivals, 3)) == [START_S + 600.0 * n for n in (1, 2, 3)]


def test_a_gap_goes_on_over_the_hours_and_their_rates() -> None:
    """From nine on nothing comes for two hours; then a draw takes half an hour."""
    hours = [2.0] * 24
    hours[9] = hours[10] = 0.0
    assert next(arrivals_s(lambda: 1.0, hours, mean_gap_s=3600.0)) == START_S + 2.5 * 3600.0


def test_the_hour_of_the_day_decides_how_many_arrive() -> None:
    random = Random(1)
    hours = [0.5] * 12 + [1.5] * 12
    times = list(islice(arrivals_s(lambda: random.expovariate(1.0), hours, 60.0), 5_000))
    late = sum(int(at_s // 3600) % 24 >= 12 for at_s in times)
    assert 0.70 < late / len(times) < 0.80
    assert times == sorted(times)
