"""Private fields are removed from events before publication."""

from __future__ import annotations

import json

from services.publisher.core.private import PRIVATE, strip


def test_command_and_environment_of_a_job_are_private() -> None:
    assert {("spec", "command"), ("spec", "env")} <= set(PRIVATE["job.admitted.v1"])


def test_a_preemption_does_not_name_the_job_of_another_tenant() -> None:
    assert ("by_job_id",) in PRIVATE["job.preempted.v1"]


def test_stripping_keeps_all_other_fields() -> None:
    data = json.dumps({"a": {"b": 1, "c": 2}, "d": 3}).encode()
    assert json.loads(strip(data, [("a", "b"), ("x", "y")])) == {"a": {"c": 2}, "d": 3}
