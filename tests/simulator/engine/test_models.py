"""The models that a simulated pool names."""

from __future__ import annotations

import pytest

from simulator.engine.models import load_model, load_models, resolve_name
from tests.services.priority.core.lane import pool


def test_a_family_is_resolved_by_preemption_and_run_times() -> None:
    assert resolve_name("berth", pool(preemption="ranked")) == "berth-preempt"
    assert resolve_name("berth", pool(runtime="user")) == "berth-queue-blind"
    assert resolve_name("berth-queue", pool(preemption="ranked")) == "berth-queue"


def test_the_acting_model_and_the_learned_shadows_are_loaded() -> None:
    settings = pool(learned="berth", shadows=("sjf", "learned:berth-queue-blind"))
    assert sorted(load_models(settings)) == ["berth-queue", "berth-queue-blind"]
    assert load_models(pool()) == {}


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"learned: 'venus', must be one of berth-preempt, .*"):
        load_model("venus")
