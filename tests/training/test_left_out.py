"""Both methods on a small course: equal budgets, states chosen by validation."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parts.rltune.__main__ import SIMULATED_JOBS, budgeted
from benchmarks.parts.rltune.network import jobs_per_epoch
from benchmarks.parts.rltune.ppo import PpoOptions as RltuneOptions
from simulator.kernel.weights import untrained
from simulator.kernel.work import build_work
from simulator.workload.jobs import columns_from
from tests.simulator.kernel.workloads import mixed
from training import folds, left_out
from training.evolution import EvolutionOptions
from training.folds import Costs, Window, cut
from training.left_out import METHODS, Course, run_base, train
from training.ppo import PpoOptions


def windows_of_both() -> dict[str, int]:
    """Return the windows that each method simulates, bases included."""
    own, ppo = left_out.EVOLUTION, left_out.PPO
    return {
        "evolution": own.generations * left_out.EVOLUTION_WINDOWS * (2 * own.pairs + 1),
        "ppo": ppo.epochs * (ppo.episodes + ppo.episodes // left_out.PPO_REPEATS),
    }


def test_all_trainings_simulate_equally_many_jobs() -> None:
    jobs = {windows * (folds.WARM_UP + folds.JOBS) for windows in windows_of_both().values()}
    assert jobs == {SIMULATED_JOBS}
    options = budgeted(RltuneOptions())
    assert options.epochs * jobs_per_epoch(options.episodes) == pytest.approx(
        SIMULATED_JOBS, rel=0.01
    )


def test_every_method_is_validated_equally_often() -> None:
    assert all(steps % left_out.VALIDATIONS == 0 for _, steps in METHODS.values())


@pytest.fixture
def course(monkeypatch: pytest.MonkeyPatch) -> Course:
    monkeypatch.setattr(folds, "WARM_UP", 10)
    monkeypatch.setattr(folds, "JOBS", 30)
    work = build_work(columns_from(mixed(150, 3)))
    windows: list[Window] = [cut(f"#{start}", work, start, 1.0) for start in range(10, 90, 10)]
    costs = Costs(600.0, 60.0, 0.0)
    return Course(windows, [run_base(window, costs) for window in windows[:2]])


@pytest.mark.parametrize("method", list(METHODS))
def test_a_training_is_reproducible_and_never_worse_validated_than_untrained(
    course: Course, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    small = {"evolution": (left_out.evolve, 3), "ppo": (left_out.follow_gradient, 3)}
    monkeypatch.setattr(left_out, "METHODS", small)
    monkeypatch.setattr(left_out, "EVOLUTION", EvolutionOptions(generations=3, pairs=2))
    monkeypatch.setattr(left_out, "PPO", PpoOptions(epochs=3, episodes=6))
    one, two = (train(course, "philly", method, 1) for _ in range(2))
    assert one.theta == two.theta
    assert one.progress == two.progress and len(one.progress) == 3
    start = left_out.loss_of(course.validation, untrained(left_out.HIDDEN, 1))
    assert one.validated <= np.exp(start) + 1e-4
    draws = 4 if method == "evolution" else 2
    runs = 5 if method == "evolution" else 4
    assert one.simulated_jobs == 3 * draws * runs * 40
