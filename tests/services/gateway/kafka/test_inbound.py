"""Every record of a submissions topic becomes one command, the same one each time."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gateway.core.submission import Sender
from services.gateway.kafka.inbound import (
    LIMIT_BYTES,
    RoutedCommand,
    SubmissionRecord,
    route_submission,
)
from shared.contracts.bounds import TenantBounds
from shared.contracts.codec import decode_command, encode
from shared.contracts.identity import derive_command_id, derive_job_id
from shared.contracts.job_commands import CancelJob, RejectSubmission, SubmitJob
from shared.ledger import cloudevents
from tests.services.gateway.core.bodies import hostile

ADA = Sender("ada", "main")
POOLS = {"main": 1, "side": 2}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def record(
    data: object, type_: str = "job.submit.v1", id: str = "run-1", tenant: str = ""
) -> bytes:
    return cloudevents.encode(
        id=id,
        source="/me",
        type=type_,
        data=json.dumps(data).encode(),
        tenant=tenant,
        traceparent=TRACE,
    )


def routed(value: bytes | None, *, active: bool = True) -> RoutedCommand:
    return route_submission(SubmissionRecord("submissions.ada", 0, 7, value), ADA, POOLS, active)


def test_a_submission_goes_to_the_lane_of_its_pool_under_an_id_of_its_place() -> None:
    made = routed(record({"name": "x", "pool": "side"}))
    assert made.id == derive_command_id("submissions.ada", 0, 7)
    assert (made.lane, made.pool, made.traceparent) == (2, "side", TRACE)
    assert isinstance(made.command, SubmitJob)
    assert made.subject == made.command.job_id == derive_job_id("ada", "side", "run-1")


def test_an_event_names_no_user_where_users_are_authenticated() -> None:
    strict = Sender("ada", "main", TenantBounds(users="authenticated"))
    named, plain = ({"name": "x", "user": "eve"}, {"name": "x"})
    made = [
        route_submission(
            SubmissionRecord("submissions.ada", 0, 7, record(data)), sender, POOLS, True
        ).command
        for data, sender in ((named, strict), (plain, strict), (named, ADA))
    ]
    refused, accepted, claimed = made
    assert isinstance(refused, RejectSubmission)
    assert "user = 'eve': must be absent: the broker knows the tenant alone" in refused.reason
    assert isinstance(accepted, SubmitJob) and accepted.spec.user == "unknown"
    assert isinstance(claimed, SubmitJob) and claimed.spec.user == "eve"


@pytest.mark.parametrize("name", ["of-bob", "../bob/of-bob", ""])
def test_a_secret_that_the_tenant_lacks_is_refused_with_variable_name_and_rule(name: str) -> None:
    value = record({"name": "x", "env": {"PASS": f"secret://{name}", "A": "secret://mine"}})
    place = SubmissionRecord("submissions.ada", 0, 7, value)
    made = route_submission(place, ADA, POOLS, True, {"mine"})
    assert isinstance(made.command, RejectSubmission)
    assert made.command.reason.startswith(f"env.PASS = 'secret://{name}': ")
    assert "env.A" not in made.command.reason
    unknown = route_submission(place, ADA, POOLS, True, None)
    assert isinstance(unknown.command, SubmitJob) and unknown.id == made.id


def test_a_long_event_id_is_a_key_by_its_digest() -> None:
    made = routed(record({"name": "x"}, id="i" * 129))
    assert isinstance(made.command, SubmitJob)
    assert len(made.command.idempotency_key) == 64


@pytest.mark.parametrize("type_", ["job.cancel.v1", "job.cancel"])
def test_a_cancel_goes_to_the_senders_pool(type_: str) -> None:
    made = routed(record({"job_id": "j1"}, type_))
    assert made.command == CancelJob(job_id="j1", tenant="ada")
    assert (made.lane, made.subject) == (1, "j1")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the record is empty"),
        (b" " * (LIMIT_BYTES + 1), f"{LIMIT_BYTES + 1} bytes; at most {LIMIT_BYTES} are read"),
        (record({"name": "x"}, "job.paint.v1"), "type: unknown"),
        (record({"name": "x"}, tenant="bob"), "must be the sender's own tenant"),
        (record({"name": "x", "tenant": "bob"}), "must be the sender's own tenant"),
        (record({"name": "x", "pool": "absent"}), "no such pool"),
        (record({"name": "x"}, id="a\x00b"), "NUL"),
        (record([1]), "object"),
    ],
)
def test_any_other_record_is_rejected_with_its_reason(value: bytes | None, reason: str) -> None:
    made = routed(value)
    assert isinstance(made.command, RejectSubmission)
    assert reason in made.command.reason
    assert (made.command.topic, made.command.offset, made.lane) == ("submissions.ada", 7, 1)


def test_a_retired_tenants_record_is_rejected() -> None:
    made = routed(record({"name": "x"}), active=False)
    assert isinstance(made.command, RejectSubmission)
    assert made.command.reason == "tenant: not registered or retired"


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=40)
    | st.none()
    | hostile.map(
        lambda data: cloudevents.encode(
            id="i", source="s", type="job.submit.v1", data=json.dumps(data).encode()
        )
    )
)
def test_every_record_makes_one_command_and_the_same_one_each_time(raw: bytes | None) -> None:
    arrived = SubmissionRecord("submissions.ada", 0, 7, raw)
    one, two = (route_submission(arrived, ADA, POOLS, True) for _ in range(2))
    assert one == two
    assert decode_command(one.command.TYPE, encode(one.command)) == one.command
    assert one.lane in POOLS.values()


def test_an_event_names_no_mails_as_the_broker_knows_no_user() -> None:
    value = record({"name": "x", "user": "eve", "notify": ["failed"]})
    made = route_submission(SubmissionRecord("submissions.ada", 0, 7, value), ADA, POOLS, True)
    assert isinstance(made.command, RejectSubmission)
    assert "mails go to an authenticated user" in made.command.reason
