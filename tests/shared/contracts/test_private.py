"""Private fields are removed from events before publication."""

from __future__ import annotations

import json

from shared.contracts.base import EVENTS
from shared.contracts.private import PRIVATE, strip


def test_command_and_environment_of_a_job_are_private() -> None:
    assert {("spec", "command"), ("spec", "env")} <= set(PRIVATE["job.admitted.v1"])


def test_no_event_names_the_job_of_another_tenant() -> None:
    naming = {kind for kind, event in EVENTS.items() if "by_job_id" in event.model_fields}
    assert {"job.preempted.v1", "job.stop-deferred.v1"} <= naming
    for kind in naming:
        assert ("by_job_id",) in PRIVATE.get(kind, ()), kind


def test_stripping_keeps_all_other_fields() -> None:
    data = json.dumps({"a": {"b": 1, "c": 2}, "d": 3}).encode()
    assert json.loads(strip(data, [("a", "b"), ("x", "y")])) == {"a": {"c": 2}, "d": 3}
