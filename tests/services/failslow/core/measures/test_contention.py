"""A busy host is not a slow worker; one busy host among calm ones is a reason to move."""

from __future__ import annotations

import pytest

from services.failslow.core.measures.contention import (
    LASTING,
    busy_host,
    delay_share,
    judge_with_delays,
)
from services.failslow.core.measures.peers import Thresholds, Verdict, judge

LIMITS = Thresholds()
NET = {rank: (1.0,) * LASTING for rank in range(4)}


def delays(*of_ranks: float, reports: int = LASTING) -> dict[int, tuple[float, ...]]:
    return {rank: (delay,) * reports for rank, delay in enumerate(of_ranks)}


def judged(late: dict[int, tuple[float, ...]], reports: int = LASTING) -> Verdict:
    net = {rank: window[:reports] for rank, window in NET.items()}
    return judge_with_delays(net, late, LIMITS)


def test_without_delays_the_verdict_is_that_of_own_work() -> None:
    net = NET | {2: (1.5,) * LASTING}
    assert judge_with_delays(net, {}, LIMITS) == judge(net, LIMITS)
    assert judge_with_delays(net, delays(0, 0, 0, 0), LIMITS) == judge(net, LIMITS)


def test_where_all_wait_for_processors_no_worker_is_slow() -> None:
    verdict = judged(delays(0.3, 0.4, 1.5, 0.35))
    assert (verdict.slow, verdict.busy) == ({}, frozenset())
    assert verdict.healthy == (0, 1, 2, 3)


def test_a_worker_that_its_host_limits_is_slow_though_the_others_wait_too() -> None:
    """As one with a quota of a twentieth of a processor, on a host with fewer than ranks."""
    late = delays(0.9, 1.1, 15.0, 1.0)
    verdict = judged(late)
    assert (list(verdict.slow), verdict.busy) == ([2], frozenset({2}))
    assert verdict.slow[2].slowdown == pytest.approx(8.0, rel=0.05)
    assert 2 not in verdict.healthy
    short = judged(delays(0.9, 1.1, 15.0, 1.0, reports=LASTING - 1), LASTING - 1)
    assert (short.slow, short.busy) == ({}, frozenset())


def test_a_worker_that_is_slow_by_itself_is_so_on_loaded_hosts_too() -> None:
    net = NET | {2: (1.5,) * LASTING}
    verdict = judge_with_delays(net, delays(0.5, 0.4, 0.4, 0.5), LIMITS)
    assert (list(verdict.slow), verdict.busy) == ([2], frozenset())
    figures = verdict.slow[2]
    assert (figures.iteration_s, figures.peers_s) == pytest.approx((1.95, 1.45))
    assert figures.slowdown == pytest.approx(1.95 / 1.45)


def test_one_busy_host_among_calm_ones_is_suspected_once_it_lasts() -> None:
    late = delays(0.01, 0.02, 0.8, 0.0)
    verdict = judged(late)
    assert (list(verdict.slow), verdict.busy) == ([2], frozenset({2}))
    assert verdict.slow[2].slowdown == pytest.approx(1.8, rel=0.03)
    short = judged(delays(0.01, 0.02, 0.8, 0.0, reports=LASTING - 1), LASTING - 1)
    assert (short.slow, short.busy) == ({}, frozenset())


def test_a_worker_on_a_busy_host_is_not_healthy_before_the_host_is_calm() -> None:
    late = delays(0.01, 0.02, 0.8, 0.0)
    assert judged(late).healthy == (0, 1, 3)
    calm = late | {2: (*late[2][:-3], 0.0, 0.0, 0.0)}
    assert judged(calm).healthy == (0, 1, 2, 3)


def test_the_cause_names_the_host_and_how_long_it_is_waited_for() -> None:
    late = delays(0.01, 0.02, 1.0, 0.0)
    diagnosis = busy_host(NET, late, "n2", 2, judged(late).slow[2])
    assert (diagnosis.cause, diagnosis.suspects[0].kind) == ("compute", "node")
    assert diagnosis.suspects[0].node_ids == ("n2",)
    assert diagnosis.evidence == (
        "waits for a processor of its host in 50% of its own work, the other workers in 1%:"
        " the host is busy, or limits it",
    )


@pytest.mark.parametrize(
    ("net", "late", "share"),
    [((1.0, 1.0), (1.0, 1.0), 0.5), ((1.0,), (), 0.0), ((9.0, 1.0), (1.0,), 0.5)],
)
def test_the_share_is_of_the_reports_that_name_delays(
    net: tuple[float, ...], late: tuple[float, ...], share: float
) -> None:
    assert delay_share(net, late) == share
