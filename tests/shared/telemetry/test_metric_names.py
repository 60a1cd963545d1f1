"""One closed list, and everything that is made of it."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from shared.telemetry.document import DOCUMENT, document
from shared.telemetry.figures import Figure
from shared.telemetry.metric_names import METRICS, MetricName, samples
from shared.telemetry.metric_spec import Spec
from shared.telemetry.metrics import Metrics
from tests.samples import QUERYABLE


def test_the_list_has_every_name_once_and_in_order() -> None:
    assert set(METRICS) == set(get_args(MetricName))
    assert list(get_args(MetricName)) == sorted(get_args(MetricName))


def test_the_document_is_fresh() -> None:
    assert DOCUMENT.read_text() == document(), "run make metrics"


@pytest.mark.parametrize(("name", "spec"), METRICS.items())
def test_a_name_says_its_unit_unless_it_counts_things(name: str, spec: Spec) -> None:
    assert re.fullmatch(r"berth_[a-z]+(_[a-z]+)*", name)
    assert not name.endswith(("_total", "_count", "_sum", "_ms", "_milli"))
    if spec.kind == "histogram":
        assert name.endswith("_seconds")
    if "Share" in spec.text or "0 to 1" in spec.text:
        assert name.endswith("_ratio")


def test_what_a_process_makes_is_on_the_list() -> None:
    metrics = Metrics("placement")
    metrics.show([Figure("berth_lanes_held", 1)])
    families = {family.name for family in metrics.registry.collect()}
    assert {name for name in families if name.startswith("berth_")} <= set(METRICS)
    assert "process_resident_memory_bytes" in families


def test_a_query_calls_a_counter_by_its_total_and_a_histogram_by_its_parts() -> None:
    assert samples("berth_decisions") == ("berth_decisions_total",)
    assert "berth_decision_seconds_bucket" in QUERYABLE
    assert "berth_decisions" not in QUERYABLE
