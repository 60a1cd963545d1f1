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
from shared.contracts.codec import decode_command, encode
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec
from tests.services.gateway.core.bodies import FIELDS, hostile, plain

ADA = Sender("ada", "main")
POOLS = {"main": 1, "side": 2}
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


@pytest.mark.parametrize(
    ("around", "field"),
    [(lambda spec: spec, "env"), (lambda spec: {"spec": spec}, "spec.env")],
    ids=["flat", "nested"],
)
def test_variables_that_berth_sets_are_refused_by_name(around: Any, field: str) -> None:
    env = {
        "RANK": "99",
        "LR": "0.1",
        "BERTH_X": "3",
        "BERTH_PROGRESS": "output",
        "BERTH_STRAGGLERS": "f",
    }
    with pytest.raises(InvalidBody) as refused:
        parse_submission(around({"name": "x", "env": env}))
    faults = [(fault.field, fault.value) for fault in refused.value.errors]
    assert faults == [(field, "RANK"), (field, "BERTH_X")]
    assert "99" not in str(refused.value)


@settings(max_examples=200, deadline=None)
@given(good_spec, st.text("xyz_", min_size=3, max_size=9), plain)
def test_an_unknown_field_is_always_named(spec: dict[str, Any], name: str, value: Any) -> None:
    if name in FIELDS:
        return
    with pytest.raises(InvalidBody) as refused:
        parse_body(FlatJobBody, {**spec, name: value})
    assert any(
        fault.field == name and fault.rule.startswith("unknown field")
        for fault in refused.value.errors
    )
