"""Traces that are left out of training, and how costs and windows are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.kernel.weights import untrained
from simulator.kernel.work import build_work
from simulator.workload.jobs import columns_from
from simulator.workload.source import read_columns
from tests.simulator.kernel.workloads import mixed
from training import folds
from training.folds import BASE, FOLDS, SOURCES, Costs, cut, draw_costs, learned_rules, log_ratio
from training.windows import FLOOR_S, jobs_between


def test_every_trace_that_trains_is_left_out_of_one_fold() -> None:
    for fold, name, _ in SOURCES:
        assert name in FOLDS[fold]
    traces = [name for names in FOLDS.values() for name in names]
    assert len(traces) == len(set(traces))
    assert {fold for fold, _, _ in SOURCES} == set(FOLDS)


def test_an_unknown_fold_is_an_error_that_names_the_others() -> None:
    with pytest.raises(ValueError, match="fold: 'venus', must be one of helios, philly"):
        folds.windows_without("venus", folds.TRAIN, 1, (0.9,))


def test_a_fold_reads_no_trace_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def windows_of(name: str, *_: object) -> list[folds.Window]:
        read.append(name)
        return []

    monkeypatch.setattr(folds, "windows_of", windows_of)
    folds.windows_without("msft_itp", folds.TRAIN, 1, (0.9,))
    assert read == ["helios_venus", "philly", "alibaba_pai_2020"]


def test_costs_lie_between_their_ends() -> None:
    drawn = [draw_costs(np.random.default_rng(seed)) for seed in range(200)]
    assert all(60.0 <= costs.checkpoint_s <= 3600.0 for costs in drawn)
    assert all(60.0 <= costs.restart_s <= 600.0 for costs in drawn)
    assert {costs.fixed_share for costs in drawn} == {0.0, 0.5, 0.9}
    assert 300.0 < np.median([costs.checkpoint_s for costs in drawn]) < 700.0


def test_rules_of_a_network_are_those_of_the_base_at_the_same_costs() -> None:
    costs = Costs(1800.0, 300.0, 0.5)
    learned, base = costs.applied(learned_rules(untrained(2, 0))), costs.applied(BASE)
    assert (learned.policy, base.policy) == ("learned", "gittins")
    for name in ("checkpoint_s", "restart_s", "fixed_share", "preemption", "preempt_margin"):
        assert getattr(learned, name) == getattr(base, name)


def test_a_ratio_is_bounded() -> None:
    assert log_ratio(50.0, 100.0) == pytest.approx(np.log(0.5))
    assert log_ratio(1e9, 100.0) == pytest.approx(np.log(folds.MAX_RATIO))


def test_a_window_counts_what_follows_its_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "WARM_UP", 20)
    monkeypatch.setattr(folds, "JOBS", 30)
    work = build_work(columns_from(mixed(100, 3)))
    window = cut("mixed", work, 40, 0.9)
    assert len(window) == 50
    assert window.batch.work.submit_ms[20] == work.submit_ms[40]
    outcome = window.run(BASE, Costs(60.0, 60.0, 0.0)).outcome
    delays = (outcome.jct_s - outcome.duration_s)[20:]
    assert window.delay_s(outcome) == pytest.approx(delays.mean() + FLOOR_S)


def test_windows_keep_within_their_period_and_need_enough_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(folds, "WARM_UP", 200)
    monkeypatch.setattr(folds, "JOBS", 300)
    work = build_work(read_columns("synthetic:helios"))
    high = jobs_between(work, (0.0, 1.0))[1]
    starts = folds.window_starts(work, (0.0, 1.0), 3)
    assert starts.tolist() == [200, (200 + high - 300) // 2, high - 300]
    with pytest.raises(ValueError, match=r"period: \(0.0, 0.1\), has \d+ jobs, must be 500"):
        folds.window_starts(work, (0.0, 0.1), 3)
