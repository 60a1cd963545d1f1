"""A state change goes to the webhooks of its own tenant that name it, its pool and no more."""

from __future__ import annotations

import msgspec
import pytest

from services.notifier.core.changes import changes_of, pool_of_lane, to_webhook, webhooks_for
from shared.contracts.attempts import (
    JobCancelled,
    JobFailed,
    JobPreempted,
    JobStarted,
    JobSucceeded,
)
from shared.contracts.pools import PoolConfigured, PoolDeleted
from shared.contracts.registry import AccessView
from shared.contracts.transfers import TransferTarget
from shared.contracts.webhooks import WebhookCreated, WebhookTested
from tests.services.notifier.changes import BASE_URL, change, record_of

FAILED = JobFailed(job_id="j1", tenant="ada", attempt=1, reason="exit", exit_code=3)


def hook(name: str, tenant: str = "ada", **more: object) -> WebhookCreated:
    return WebhookCreated.model_validate(
        {
            "tenant": tenant,
            "name": name,
            "url": "https://hooks.example.org/",
            "events": ["failed"],
            "created_by": "key:a",
            "created_at": 5,
            **more,
        }
    )


@pytest.fixture
def view() -> AccessView:
    view = AccessView()
    for created in (
        hook("every"),
        hook("here", pools=["gpu"]),
        hook("elsewhere", pools=["other"]),
        hook("starts", events=["started"]),
        hook("late", created_at=11),
        hook("every", tenant="eve"),
    ):
        view.apply(created)
    return view


def test_only_the_webhooks_of_its_tenant_pool_and_time(view: AccessView) -> None:
    failed = change(FAILED, "placement", at=10)
    assert [(one.tenant, one.name) for one in webhooks_for(failed, view)] == [
        ("ada", "every"),
        ("ada", "here"),
    ]
    assert webhooks_for(change(JobSucceeded(job_id="j1", tenant="ada", attempt=1)), view) == []


def test_a_job_that_goes_on_in_another_pool_has_not_ended(view: AccessView) -> None:
    view.apply(hook("cancels", events=["cancelled"]))
    target = TransferTarget(pool="b", job_id="j2")
    left = JobCancelled(job_id="j1", tenant="ada", transferred_to=target)
    assert webhooks_for(change(left, "placement", at=10), view) == []
    ended = JobCancelled(job_id="j1", tenant="ada")
    assert [one.name for one in webhooks_for(change(ended, "placement", at=10), view)] == [
        "cancels"
    ]


def test_a_test_goes_to_its_webhook_alone(view: AccessView) -> None:
    tested = change(WebhookTested(tenant="ada", name="starts"), "access", at=10)
    assert [one.name for one in webhooks_for(tested, view)] == ["starts"]
    unknown = change(WebhookTested(tenant="ada", name="none"), "access", at=10)
    assert webhooks_for(unknown, view) == []


def test_the_body_is_the_public_event_with_a_link_to_its_job(view: AccessView) -> None:
    sent = to_webhook(change(FAILED, "placement", at=10), hook("every"), BASE_URL)
    event = msgspec.json.decode(sent.body)
    assert (sent.tenant, sent.target, sent.event_id) == ("ada", "every", "placement/0/7/0")
    assert (event["id"], event["type"], event["pool"]) == (sent.event_id, "job.failed.v1", "gpu")
    assert event["link"] == f"{BASE_URL}/v1/jobs/j1"
    assert event["data"]["exit_code"] == 3


def test_a_preemption_does_not_name_the_job_of_another_tenant() -> None:
    preempted = JobPreempted(
        job_id="j1", tenant="ada", attempt=1, reason="higher_class", by_job_id="foreign"
    )
    sent = to_webhook(change(preempted, "placement"), hook("every"), BASE_URL)
    assert "foreign" not in sent.body


def test_other_events_are_none() -> None:
    started = JobStarted(job_id="j1", tenant="ada", attempt=1)
    record = record_of("placement", started, PoolConfigured(pool="gpu", partition=0))
    assert [one.state_change for one in changes_of(record, "gpu")] == ["started"]


def test_the_pool_of_a_lane_is_known_after_it_was_deleted(view: AccessView) -> None:
    view.apply(PoolConfigured(pool="gpu", partition=1))
    assert (pool_of_lane(view, 1), pool_of_lane(view, 0)) == ("gpu", "")
    view.apply(PoolDeleted(pool="gpu", partition=1))
    assert pool_of_lane(view, 1) == "gpu"
