"""The variants of the shipped network, and the rules that they are trained under."""

from __future__ import annotations

import numpy as np

from services.priority.core.learned.model import model_name
from shared.contracts.pools import PoolConfigured
from simulator.engine.models import FOLDER
from simulator.kernel.weights import untrained
from training.variants import FIRST, SHIPPED, VARIANTS, Variant


def test_every_shipped_variant_is_the_model_of_the_pools_that_it_is_for() -> None:
    for variant in SHIPPED:
        pool = PoolConfigured.model_validate(
            {
                "pool": "p",
                "partition": 0,
                "preemption": "ranked" if variant.preemption else "class",
                "runtime": "history" if variant.history else "user",
            }
        )
        assert variant.name == model_name("berth", pool)
        assert (FOLDER / f"{variant.name}.onnx").is_file()


def test_variants_are_found_by_name_and_the_first_is_not_shipped() -> None:
    assert VARIANTS["berth-queue"].name == "berth-queue"
    assert VARIANTS["first"] is FIRST and FIRST not in SHIPPED


def test_rules_of_a_variant_without_history_read_none() -> None:
    theta = untrained(4, seed=1)
    rules = Variant("x", preemption=False, history=False, band=0.5).rules(theta, "wfp3")
    assert (rules.runtime, rules.base, rules.band, rules.preemption) == ("none", "wfp3", 0.5, False)
    assert np.array_equal(rules.theta, theta) and rules.defragment_after_s is None
    assert FIRST.rules(theta).runtime == "history"
