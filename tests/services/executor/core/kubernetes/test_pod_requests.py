"""Requests of pods to Berth, and the fields of theirs that it cannot keep."""

from __future__ import annotations

from typing import Any

import pytest

from services.executor.core.kubernetes.pod_requests import PodRequest, request_of
from tests.services.executor.core.kubernetes.user_pods import user_row


def request(**fields: Any) -> PodRequest:
    requested = request_of(user_row(**fields))
    assert requested is not None
    return requested


def test_a_pod_of_another_scheduler_requests_nothing() -> None:
    assert request_of(user_row(schedulerName="default-scheduler")) is None


def test_a_pod_has_its_gang_rank_grace_and_walltime() -> None:
    requested = request(
        group="train",
        size=4,
        labels={"batch.kubernetes.io/job-completion-index": "3", "berth/pool": "cloud"},
        terminationGracePeriodSeconds=0,
        activeDeadlineSeconds=60,
        message="waits",
    )
    assert (requested.group, requested.size, requested.index, requested.pool) == (
        "train",
        4,
        (0, 3),
        "cloud",
    )
    assert (requested.grace_s, requested.deadline_s, requested.message) == (0, 60, "waits")
    assert requested.fault == ""


def test_without_a_size_a_pod_is_alone_with_the_grace_of_kubernetes() -> None:
    requested = request(group="train")
    assert (requested.group, requested.size, requested.grace_s, requested.deadline_s) == (
        "",
        1,
        30,
        None,
    )


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"group": "g", "size": "0"}, "berth/group-size: '0'"),
        ({"group": "g", "size": "9" * 5000}, "berth/group-size: '999"),
        ({"group": "g", "size": 513}, "from 1 to 512"),
        ({"group": "g", "size": "\u0661"}, "berth/group-size"),
        ({"size": 2}, "berth/group: this label"),
        ({"size": ""}, "berth/group-size: ''"),
        ({"annotations": {"berth/priority-class": "first"}}, "'first': must be one of system"),
        ({"nodeSelector": {"a": "b"}}, "nodeSelector"),
        (
            {
                "affinity": {
                    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}
                }
            },
            "affinity.podAntiAffinity",
        ),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, "DoNotSchedule"),
        ({"resourceClaims": [{"name": "gpu"}]}, "resourceClaims"),
    ],
)
def test_a_field_that_berth_cannot_keep_is_named(fields: dict[str, Any], fault: str) -> None:
    assert fault in request(**fields).fault


def test_preferences_and_gates_are_no_faults() -> None:
    preferred: dict[str, Any] = {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}
    requested = request(affinity={"nodeAffinity": preferred}, schedulingGates=[{"name": "later"}])
    assert requested.fault == "" and requested.is_gated
