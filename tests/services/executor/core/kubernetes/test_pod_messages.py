"""Conditions and events as Kubernetes has them."""

from __future__ import annotations

from services.executor.core.kubernetes.pod_messages import condition_change, event_manifest
from tests.services.executor.core.kubernetes.user_pods import uid_of, user_pod

AT_MS = 1_767_225_600_000


def test_a_condition_is_of_this_pod_and_replaces_the_one_of_its_type() -> None:
    change = condition_change(user_pod("a"), "it waits", AT_MS)
    assert change["metadata"]["uid"] == uid_of("a")
    [condition] = change["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert (condition["message"], condition["lastTransitionTime"]) == (
        "it waits",
        "2026-01-01T00:00:00Z",
    )


def test_an_event_names_its_pod_and_has_one_name_per_text_and_second() -> None:
    event = event_manifest(user_pod("a" * 6), "it waits", AT_MS)
    assert event["involvedObject"]["uid"] == uid_of("a" * 6)
    assert event["metadata"]["namespace"] == event["involvedObject"]["namespace"]
    again = event_manifest(user_pod("a" * 6), "it waits", AT_MS + 900)
    other = event_manifest(user_pod("a" * 6), "it still waits", AT_MS)
    assert event["metadata"]["name"] == again["metadata"]["name"] != other["metadata"]["name"]
