"""An invalid job is refused with the field that is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shared.contracts.job_spec import Gang, JobSpec


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"gang": {"workers": 0}}, "gang.workers"),
        ({"gang": {"workers": -3}}, "gang.workers"),
        ({"gang": {"workers": 10**9}}, "gang.workers"),
        ({"gang": {"gpus_per_worker": 1.5}}, "gang.gpus_per_worker"),
        ({"gang": {"gpus_per_worker": -1}}, "gang.gpus_per_worker"),
        ({"gang": {"gpus_per_worker": 0.001}}, "gang.gpus_per_worker"),
        ({"gang": {"gpus_per_worker": float("nan")}}, "gang.gpus_per_worker"),
        ({"gang": {"mem_gib_per_worker": float("inf")}}, "gang.mem_gib_per_worker"),
        ({"walltime_s": 0}, "walltime_s"),
        ({"grace_s": -1}, "grace_s"),
        ({"name": ""}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"user": "Someone Else"}, "user"),
        ({"priority_class": "urgent"}, "priority_class"),
        ({"env": {"DB_PASSWORD": "hunter2"}}, "env"),
        ({"env": {"A=B": "1"}}, "env"),
        ({"elastic": {"min_workers": 4, "max_workers": 2}}, "elastic"),
        ({"depends_on": ["has space"]}, "depends_on.0"),
        ({"command": ["a\x00"]}, "command"),
        ({"retry": {"max_attempts": 0}}, "retry.max_attempts"),
    ],
)
def test_an_invalid_job_is_refused_with_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        JobSpec.model_validate({"name": "train", **change})
    assert field in {".".join(map(str, e["loc"])) for e in caught.value.errors()}


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "db_password", "AWS_SECRET_KEY", "MyApiKey", "GHTOKEN", "HF_TOKEN2"]
)
def test_a_credential_is_refused_as_plain_text(name: str) -> None:
    with pytest.raises(ValidationError, match=f"{name} looks like a credential"):
        JobSpec(name="train", env={name: "sesame"})


@pytest.mark.parametrize(
    "name", ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "TOKENIZER_PATH", "SSH_PRIVATEKEY"]
)
def test_an_ordinary_variable_is_no_credential(name: str) -> None:
    assert JobSpec(name="train", env={name: "1"}).env == {name: "1"}


def test_a_secret_by_reference_is_allowed() -> None:
    spec = JobSpec(name="train", env={"DB_PASSWORD": "secret://db"})
    assert spec.env["DB_PASSWORD"] == "secret://db"


@given(st.integers(1, 4096), st.sampled_from([0, 0.25, 0.5, 1, 2, 8]))
def test_a_gang_counts_its_gpus(workers: int, gpus_per_worker: float) -> None:
    assert Gang(workers=workers, gpus_per_worker=gpus_per_worker).gpus == workers * gpus_per_worker
