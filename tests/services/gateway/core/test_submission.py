"""A body gives either a command that admission can read, or errors with field and rule."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gateway.core.field_errors import InvalidBody, NotJson
from services.gateway.core.strict import parse_body, parse_object
from services.gateway.core.submission import (
    FlatJobBody,
    Sender,
    TenantMismatch,
    job_ids,
    parse_submission,
    submit_job,
)
from services.gateway.core.vector import decode_vector, encode_vector
from services.gateway.inbound import SubmissionRecord, route_submission
from shared.contracts.codec import decode_command, encode
from shared.contracts.jobs import JobSpec, SubmitJob
from shared.ledger import cloudevents

ADA = Sender("ada", "main")
POOLS = {"main": 1, "side": 2}
FIELDS = sorted({*FlatJobBody.model_fields, "spec", "colour"})

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
hostile = st.dictionaries(st.sampled_from(FIELDS), plain, max_size=6)
good_spec = st.fixed_dictionaries(
    {"name": st.text("abc-", min_size=1, max_size=9)},
    optional={
        "gang": st.fixed_dictionaries({"workers": st.integers(1, 8)}),
        "priority_class": st.sampled_from(["high", "normal", "low"]),
        "spot": st.booleans(),
        "walltime_s": st.floats(1, 1e6),
        "command": st.lists(st.text("ab/", max_size=5), max_size=3),
        "env": st.dictionaries(st.text("AB", min_size=1, max_size=3), st.text("x", max_size=3)),
        "depends_on": st.lists(st.just("job-1"), max_size=2),
    },
)


@settings(max_examples=300, deadline=None)
@given(hostile)
def test_any_object_is_a_command_or_a_list_of_faults(body: dict[str, Any]) -> None:
    try:
        raw = msgspec.json.encode(body)
        command = submit_job(parse_submission(parse_object(raw)), ADA, POOLS, "k")
    except (NotJson, TenantMismatch, msgspec.MsgspecError, UnicodeEncodeError):
        return
    except InvalidBody as error:
        assert error.errors and all(fault.rule for fault in error.errors)
        return
    assert decode_command(SubmitJob.TYPE, encode(command)) == command


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_not_json(raw: bytes) -> None:
    try:
        assert isinstance(parse_object(raw), dict)
    except NotJson:
        return


@settings(max_examples=200, deadline=None)
@given(good_spec, st.sampled_from(["main", "side"]), st.integers(1, 5))
def test_both_spellings_say_the_same_and_survive_the_wire(
    spec: dict[str, Any], pool: str, array_size: int
) -> None:
    around = {"pool": pool, "array_size": array_size}
    flat = submit_job(parse_submission({**spec, **around}), ADA, POOLS, "k")
    nested = submit_job(parse_submission({"spec": spec, **around}), ADA, POOLS, "k")
    assert flat == nested == decode_command(SubmitJob.TYPE, encode(flat))
    assert flat.spec == JobSpec.model_validate_json(json.dumps(spec))
    assert len(job_ids(flat)) == array_size


@pytest.mark.parametrize(
    ("around", "field"),
    [
        (lambda spec: spec, "gang.gpus_per_worker"),
        (lambda spec: {"spec": spec}, "spec.gang.gpus_per_worker"),
    ],
    ids=["flat", "nested"],
)
def test_a_job_that_takes_nothing_of_its_nodes_is_refused(around: Any, field: str) -> None:
    gang = {"gpus_per_worker": 0, "cpus_per_worker": 0, "mem_gib_per_worker": 0}
    with pytest.raises(InvalidBody) as refused:
        parse_submission(around({"name": "x", "gang": gang}))
    assert [(fault.field, fault.value) for fault in refused.value.errors] == [(field, 0)]
    assert refused.value.errors[0].rule.startswith("a worker needs some GPU")


@settings(max_examples=200, deadline=None)
@given(good_spec, st.text("xyz_", min_size=3, max_size=9), plain)
def test_an_unknown_field_is_always_named(spec: dict[str, Any], name: str, value: Any) -> None:
    if name in FIELDS:
        return
    with pytest.raises(InvalidBody) as refused:
        parse_body(FlatJobBody, {**spec, name: value})
    assert any(
        fault.field == name and fault.rule == "unknown field" for fault in refused.value.errors
    )


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


def test_a_retired_tenants_record_is_rejected() -> None:
    raw = cloudevents.encode(id="i", source="s", type="job.submit.v1", data=b'{"name": "x"}')
    made = route_submission(
        SubmissionRecord("submissions.ada", 0, 7, raw), ADA, POOLS, active=False
    )
    assert made.command.TYPE == "submission.reject.v1"


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=16))
def test_a_place_survives_its_text(offsets: list[int]) -> None:
    assert decode_vector(encode_vector(offsets), len(offsets)) == offsets


@given(st.text(max_size=30))
def test_any_text_is_a_place_or_none(text: str) -> None:
    offsets = decode_vector(text, 2)
    assert offsets is None or len(offsets) == 2
