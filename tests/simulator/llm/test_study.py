"""A trace is served to its end by the engine's times, under any discipline."""

from __future__ import annotations

import pytest

from services.throttle.core.disciplines.catalog import DISCIPLINES
from services.throttle.core.disciplines.limits import Limits
from simulator.llm.abuse import AGENT_CALLS, LIMITS, AbuseLoad, is_abuser
from simulator.llm.batching import EngineLimits, StepCosts
from simulator.llm.requests import TraceRequest
from simulator.llm.study import Study
from simulator.llm.traces import servegen_requests


def test_one_request_takes_the_steps_of_its_answer() -> None:
    study = Study(DISCIPLINES["fcfs"](Limits()))
    (outcome,) = study.run([TraceRequest("r", "a", 5.0, 100, 3)])
    costs = StepCosts()
    assert outcome.started_s == 5.0
    assert outcome.first_s == pytest.approx(5.0 + costs.duration_s(100, 100))
    rest_s = costs.duration_s(101, 0) + costs.duration_s(102, 0)
    assert outcome.finished_s == pytest.approx(outcome.first_s + rest_s)


@pytest.mark.parametrize("policy", DISCIPLINES)
def test_every_request_is_served_or_refused(policy: str) -> None:
    requests = servegen_requests(tenants=6, span_s=40, per_s=2)
    outcomes = Study(DISCIPLINES[policy](Limits(tenant_per_minute=10))).run(requests)
    assert len(outcomes) == len(requests)
    assert all(o.refused or o.finished_s >= o.first_s > o.started_s for o in outcomes)
    assert all(o.refused or o.queued_s >= 0 for o in outcomes)


def test_a_request_that_can_never_fit_is_an_error() -> None:
    study = Study(DISCIPLINES["fcfs"](Limits()), EngineLimits(100))
    with pytest.raises(ValueError, match="r: 90 prompt and 20 output tokens"):
        study.run([TraceRequest("r", "a", 0.0, 90, 20)])


def test_agents_go_on_until_their_last_call() -> None:
    load = AbuseLoad("agent", 8, span_s=20)
    outcomes = Study(DISCIPLINES["berth"](Limits()), LIMITS, load.follow).run(load.first_calls())
    stages = [o.request.stage for o in outcomes if is_abuser(o.request.tenant)]
    assert stages.count(0) == stages.count(AGENT_CALLS - 1) > 0


def test_policies_get_the_same_calls() -> None:
    calls = []
    for policy in ("fcfs", "vtc"):
        load = AbuseLoad("agent", 8, span_s=20)
        study = Study(DISCIPLINES[policy](Limits()), LIMITS, load.follow)
        outcomes = study.run(load.first_calls())
        calls.append({(o.request.request_id, o.request.prompt_tokens) for o in outcomes})
    assert calls[0] == calls[1]
