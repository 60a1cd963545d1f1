"""Who used what, against jobs of known size."""

from __future__ import annotations

import pytest

from services.priority import figures as module
from services.priority.core.state import Queue
from services.priority.figures import figures
from shared.testing.decider import AT, given, run
from tests.services.priority.core.lane import PRIORITY, admitted, placed, pool


def told(queue: Queue, at: int) -> dict[tuple[str, ...], float]:
    found = list(figures(queue, at))
    assert len({(name, labels) for name, _, labels in found}) == len(found)
    return {(name.removeprefix("berth_"), *labels): value for name, value, labels in found}


def busy() -> Queue:
    state = given(PRIORITY, pool("fair_share"))
    jobs = [admitted("r"), admitted("b", tenant="blue")]
    run(
        PRIORITY,
        state,
        [*jobs, placed("r", gpus=6, at=AT), placed("b", tenant="blue", gpus=2, at=AT)],
    )
    return state


def test_the_gap_is_what_a_tenant_has_above_its_fair_share() -> None:
    found = told(busy(), AT + 60_000)
    assert found["tenant_use_ratio", "p", "red"] == pytest.approx(0.75)
    assert found["tenant_weight_ratio", "p", "red"] == 0.5
    assert found["fairness_gap_ratio", "p"] == pytest.approx(0.25)


def test_who_has_no_job_here_is_no_part_of_the_gap() -> None:
    state = given(PRIORITY, pool("fair_share"))
    run(PRIORITY, state, [admitted("r"), placed("r", gpus=6, at=AT)])
    assert told(state, AT + 60_000)["fairness_gap_ratio", "p"] == 0


def test_only_so_many_tenants_become_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TENANTS_MOST", 1)
    found = told(busy(), AT + 60_000)
    assert [key[2] for key in found if key[0] == "tenant_use_ratio"] == ["red"]


def test_an_order_ages_only_while_jobs_wait() -> None:
    state = given(PRIORITY, pool("fair_share"))
    run(PRIORITY, state, [admitted("r")])
    assert told(state, AT + 4000)["order_age_seconds", "p"] == pytest.approx(4, abs=1)
    assert told(busy(), AT + 4000)["order_age_seconds", "p"] == 0


def test_an_order_that_is_said_once_for_all_does_not_age() -> None:
    state = given(PRIORITY, pool("fcfs", rank_ms=0))
    run(PRIORITY, state, [admitted("r")])
    assert told(state, AT + 60_000)["order_age_seconds", "p"] == 0


def test_a_degraded_policy_is_counted() -> None:
    state = busy()
    state.degraded["learned:x"] = "bad_model"
    assert told(state, AT)["policies_degraded", "p"] == 1
    assert list(figures(Queue(0), AT)) == []
