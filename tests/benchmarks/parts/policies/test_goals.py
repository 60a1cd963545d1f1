"""Goals of the comparison of policies: met, not met or not measured."""

from __future__ import annotations

from typing import Any

from benchmarks.parts.policies.cells import Cell
from benchmarks.parts.policies.goals import BATCHES, goals_of

SKIP, STRICT = "fcfs/blind/skip/False", "fcfs/blind/strict/False"
QSSF = "qssf/history/skip/False"
NETWORK, GITTINS = "learned:berth-preempt/history/skip/True", "gittins/history/skip/True"
ALL_TRACES = "wait at least 65 % below FCFS that blocks, on every trace"


def replay(trace: str, load: float = 0.9, **changes: Any) -> dict[str, Any]:
    waits_s = {STRICT: 1000.0, SKIP: 300.0, QSSF: 90.0, NETWORK: 50.0, GITTINS: 50.0}
    waits_s |= changes.pop("waits_s", {})
    return {
        "trace": trace,
        "load": load,
        "mean_wait_s": waits_s[GITTINS],
        "gap_closed_skip_fcfs_to_srsf_oracle": 0.9,
        "p99_wait_s": 10.0,
        "p99_wait_s_easy_fcfs_true": 20.0,
        "utilisation": 0.9,
        "utilisation_skip_fcfs": 0.9,
        "without_preemption": QSSF,
        "rules": {name: {"mean_wait_s": wait_s} for name, wait_s in waits_s.items()},
    } | changes


def verdicts(*replays: dict[str, Any]) -> list[str]:
    return [result.split(":")[0] for result in goals_of(replays, []).values()]


GOOD = replay("philly")


def test_a_good_replay_meets_all_but_what_the_network_has_to_earn() -> None:
    results = verdicts(GOOD, replay("philly", 1.1), replay("msft_itp"))
    assert results == [*["met"] * 9, "not met", "not measured"]


def test_nothing_is_met_without_a_measurement() -> None:
    assert set(verdicts()) == {"not measured"}
    assert verdicts(replay("philly", 0.7))[:9] == ["not measured"] * 9


def test_the_worst_place_decides_and_is_named() -> None:
    worse = replay("alibaba_pai_2020", waits_s={GITTINS: 360.0})
    result = goals_of([GOOD, worse], [])[ALL_TRACES]
    assert result == "not met: +64.0% (alibaba_pai_2020 at 0.90)"
    assert verdicts(GOOD, replay("helios_venus", p99_wait_s=21.0))[4] == "not met"
    assert verdicts(GOOD, replay("helios_venus", utilisation=0.87))[5] == "not met"
    assert verdicts(replay("philly", waits_s={QSSF: 110.0}))[6] == "not met"
    assert verdicts(GOOD, replay("x", waits_s={QSSF: 310.0}))[8] == "not met"


def test_a_network_earns_its_place_by_a_tenth_of_the_wait() -> None:
    better = replay("philly", waits_s={NETWORK: 44.0})
    assert list(goals_of([better], []).values())[-2] == "met: -12.0%"


def test_gains_in_rltunes_batches_are_judged_together() -> None:
    gains = {"mean_wait_s": 0.93, "mean_jct_s": 0.71, "utilisation": 0.12}
    cells = [
        Cell("t", BATCHES, None, "strict", "fcfs", "blind", "gittins", metric, 1, 1, own, 0, 0, 1)
        for metric, own in gains.items()
    ]
    assert list(goals_of([], cells).values())[-1] == "not met: +93% / +71% / +12%"
