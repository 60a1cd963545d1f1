"""Retraining beside serving: the five rules of MACE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from services.throttle.core.retraining import Retraining, RetrainingLimits
from simulator.llm.batching import EngineLimits
from simulator.llm.colocated import Colocated, ColocatedOutcome
from simulator.llm.drift import UserDrift
from simulator.llm.requests import TraceRequest
from simulator.llm.retraining import Mace, RetrainingPolicy, ServeOnly
from simulator.llm.traces import servegen_requests

LIMITS = RetrainingLimits()
REQUESTS = servegen_requests(1, 12, 120, 0.75)


def drifting(count: int = 4, growth: float = 0.01) -> dict[str, UserDrift]:
    return {f"t{n:02d}": UserDrift([(0.0, growth)]) for n in range(1, count + 1)}


def served(
    policy: RetrainingPolicy, users: dict[str, UserDrift], slowdown: float = 1.0
) -> tuple[Colocated, list[ColocatedOutcome]]:
    engine = Colocated(policy, users, LIMITS, slowdown=slowdown)
    return engine, engine.run(REQUESTS, 120)


@dataclass(slots=True)
class Recorded(Mace):
    """Keeps how well the model predicts each iteration."""

    errors: list[float] = field(default_factory=list)

    def measured(self, modelled_s: float, measured_s: float, tokens: int) -> None:
        predicted_s = modelled_s * self.costs.correction
        self.errors.append(abs(predicted_s / measured_s - 1))
        Mace.measured(self, modelled_s, measured_s, tokens)


def test_without_users_to_retrain_latencies_are_those_of_serving_alone() -> None:
    alone, beside = (served(policy, {})[1] for policy in (ServeOnly(), Mace(LIMITS)))
    assert [(o.first_s, o.finished_s) for o in alone] == [(o.first_s, o.finished_s) for o in beside]


def test_without_requests_all_time_is_for_retraining_and_the_gap_falls() -> None:
    users = {f"t{n}": UserDrift([(0.0, 0.0)], gap=0.8) for n in range(4)}
    engine = Colocated(Mace(LIMITS), users, LIMITS)
    gaps = []
    for until_s in (5.0, 10.0, 20.0):
        engine.run([], until_s)
        gaps.append(sum(drift.gap for drift in users.values()))
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < gaps[0] < 3.2
    busy_until_s = 20 * engine.busy_s / engine.now_s
    assert busy_until_s > 19 or gaps[-1] / 4 < LIMITS.least_gap


def test_a_burst_of_prompts_stops_retraining_within_one_iteration() -> None:
    prompts = [TraceRequest(f"r{n}", "t01", 10.0, 600, 50) for n in range(8)]
    mace = Mace(LIMITS)
    log: list[tuple[int, int]] = []

    class Watched(Colocated):
        def iterate(self, retraining: Retraining | None) -> None:
            log.append((self.unread_tokens, retraining.tokens if retraining else 0))
            Colocated.iterate(self, retraining)

    watched = Watched(mace, drifting(), LIMITS)
    outcomes = watched.run(prompts, 20)
    assert any(unread > 1000 for unread, _ in log)
    assert all(tokens == 0 for unread, tokens in log if unread > 1000)
    alone = Colocated(ServeOnly(), {}, LIMITS).run(prompts, 20)
    assert sum(o.misses(LIMITS) for o in outcomes) <= sum(o.misses(LIMITS) for o in alone)


@pytest.mark.parametrize("slowdown", [0.8, 1.3])
def test_the_model_of_iterations_is_soon_within_ten_percent(slowdown: float) -> None:
    policy = Recorded(LIMITS)
    served(policy, drifting(), slowdown)
    assert max(policy.errors[100:]) < 0.1


def test_retraining_leaves_memory_before_a_request_waits_for_it() -> None:
    requests = [TraceRequest(f"r{n}", "t01", 20.1, 100, 200) for n in range(7)]
    tight = EngineLimits(kv_tokens=2400)
    engine = Colocated(Mace(LIMITS), drifting(), LIMITS, tight)
    outcomes = engine.run(requests, 30)
    alone = Colocated(ServeOnly(), {}, LIMITS, tight).run(requests, 30)
    assert engine.evictions > 0
    one_iteration_s = 2 * LIMITS.tpot_s
    first_s, first_alone_s = (max(o.first_s for o in run) for run in (outcomes, alone))
    assert first_s <= first_alone_s + one_iteration_s


def test_a_request_keeps_the_version_with_which_it_was_started() -> None:
    requests = [TraceRequest(f"r{n}", "t01", 3.0 * n, 50, 400) for n in range(12)]
    pinned: dict[str, set[int]] = {}

    class Watched(Colocated):
        def finish(self, finished: Sequence[ColocatedOutcome]) -> None:
            for key, outcome in self.running.items():
                pinned.setdefault(key, set()).add(outcome.version)
                assert self.versions.in_use["t01", outcome.version] > 0
            Colocated.finish(self, finished)

    watched = Watched(Mace(LIMITS), drifting(1, 0.05), LIMITS)
    outcomes = watched.run(requests, 60)
    assert watched.versions.latest["t01"] > 2
    assert all(len(versions) == 1 for versions in pinned.values())
    assert len({outcome.version for outcome in outcomes}) > 2
    assert watched.versions.in_use == {}


def test_a_request_that_can_never_fit_is_an_error() -> None:
    engine = Colocated(ServeOnly(), {}, LIMITS, EngineLimits(100))
    with pytest.raises(ValueError, match="r: 90 prompt and 20 output tokens"):
        engine.run([TraceRequest("r", "t", 0.0, 90, 20)], 1)
