from __future__ import annotations

from typing import Any

import pytest

from services.admission.core.rules import MAX_BODY_BYTES, MAX_ID_CHARS, check_rules
from services.admission.core.verdict import Reject
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec
from tests.services.admission.core.cases import POOL


def check(job_id: str = "j1", size: int = 1, body_bytes: int = 100, **spec: Any) -> Reject | None:
    command = SubmitJob(
        job_id=job_id,
        tenant="acme",
        pool="main",
        idempotency_key="k",
        array_size=size,
        spec=JobSpec.model_validate({"name": "train", **spec}),
    )
    return check_rules(POOL, command, body_bytes)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"gang": {"workers": 4}, "elastic": {"min_workers": 1, "max_workers": 4}},
        {"spot": True},
        {"guaranteed_s": 60},
        {"gang": {"gpus_per_worker": 0, "cpus_per_worker": 0}},
        {"gang": {"gpus_per_worker": 0, "mem_gib_per_worker": 0, "cpus_per_worker": 0.001}},
    ],
)
def test_a_spec_that_keeps_the_rules_passes(spec: dict[str, Any]) -> None:
    assert check(**spec) is None


@pytest.mark.parametrize(
    ("spec", "detail"),
    [
        (
            {"gang": {"gpus_per_worker": 0, "cpus_per_worker": 1e-4, "mem_gib_per_worker": 1e-4}},
            "gang.gpus_per_worker: 0: a worker needs some GPU, CPU core (0.001 or more) or memory "
            "(1 MiB or more)",
        ),
        (
            {"gang": {"workers": 5}, "elastic": {"min_workers": 1, "max_workers": 4}},
            "gang.workers: 5: must lie in the elastic range 1..4",
        ),
        (
            {"spot": True, "preemptible": False},
            "preemptible: false: a spot job must be preemptible",
        ),
        ({"spot": True, "guaranteed_s": 60}, "guaranteed_s: 60: must be 0 for a spot job"),
    ],
)
def test_a_broken_rule_is_named_with_field_and_value(spec: dict[str, Any], detail: str) -> None:
    assert check(**spec) == Reject("invalid_spec", detail)


def test_a_body_at_the_limit_passes_and_a_larger_one_does_not() -> None:
    assert check(body_bytes=MAX_BODY_BYTES) is None
    rejection = check(body_bytes=MAX_BODY_BYTES + 1)
    assert rejection is not None
    assert rejection.reason == "too_large"


def test_the_longest_id_of_an_array_counts() -> None:
    assert check("j" * (MAX_ID_CHARS - 2), size=10) is None
    assert check("j" * (MAX_ID_CHARS - 2), size=11) is not None
    assert check("j" * MAX_ID_CHARS) is None


@pytest.mark.parametrize(
    ("backends", "field", "detail"),
    [
        (
            ("agent",),
            {"image": "dir:/etc"},
            "image: 'dir:/etc': must be NAME, NAME:TAG or NAME@sha256:DIGEST of 256 characters"
            " at most",
        ),
        (("agent",), {"image": "nvcr.io:443/nvidia/pytorch:24.01-py3"}, None),
        (("agent",), {"image": "localhost/own_image@sha256:" + 64 * "a"}, None),
        (("process",), {}, "pool: 'main': its backend process is retired; configure it with agent"),
        (("process", "agent"), {"workdir": "/data"}, None),
        (("virtual",), {"workdir": "/data", "simulated": {"duration_s": 5}}, None),
        (("virtual", "agent"), {"simulated": {"duration_s": 5}}, None),
        (
            ("virtual",),
            {"image": "torch:2"},
            "image: 'torch:2': pool main simulates jobs, not images",
        ),
        (
            ("agent",),
            {"simulated": {"duration_s": 5}},
            "simulated: {'duration_s': 5.0}: must be absent in pool main, which runs processes",
        ),
    ],
)
def test_what_a_pool_cannot_do_is_refused(
    backends: tuple[str, ...], field: dict[str, Any], detail: str | None
) -> None:
    command = SubmitJob(
        job_id="j1",
        tenant="acme",
        pool="main",
        idempotency_key="k",
        spec=JobSpec.model_validate({"name": "train", "command": ["python"], **field}),
    )
    reject = check_rules(POOL.model_copy(update={"backends": backends}), command, 100)
    assert reject == (Reject("invalid_spec", detail) if detail else None)


PODS = tuple(f"00000000-0000-0000-0000-00000000000{number}" for number in (1, 2))


@pytest.mark.parametrize(
    ("pool", "spec", "words"),
    [
        ({}, {}, None),
        ({"release": 0}, {}, "must be absent until `berth upgrade finish`"),
        ({"backends": ("agent",)}, {}, "pods: 2: must be absent in pool main"),
        ({}, {"gang": {"workers": 3}}, "gang.workers: 3: must be the number"),
        ({}, {"pods": (PODS[0], PODS[0])}, "gang.workers: 2"),
        ({}, {"elastic": {"min_workers": 1, "max_workers": 2}}, "gang.workers: 2"),
    ],
)
def test_pods_are_workers_in_a_pool_of_kubernetes_one_each(
    pool: dict[str, Any], spec: dict[str, Any], words: str | None
) -> None:
    values = {"name": "train", "gang": {"workers": 2}, "pods": PODS, **spec}
    command = SubmitJob(
        job_id="j1",
        tenant="acme",
        pool="main",
        idempotency_key="k",
        spec=JobSpec.model_validate(values),
    )
    own = {"backends": ("kubernetes",), "release": 1, **pool}
    reject = check_rules(POOL.model_copy(update=own), command, 100)
    assert reject is None if words is None else reject is not None and words in reject.detail


MEASURED = {"validates": ("n1", "n2"), "gang": {"workers": 2}, "walltime_s": 60}


def check_validation(release: int = 1, by_operator: bool = True, **spec: Any) -> str:
    command = SubmitJob(
        job_id="j1",
        tenant="acme",
        pool="main",
        idempotency_key="k",
        spec=JobSpec.model_validate({"name": "validate", **MEASURED, **spec}),
        by_operator=by_operator,
    )
    rejection = check_rules(POOL.model_copy(update={"release": release}), command, 100)
    return rejection.detail if rejection else ""


def test_operators_may_measure_nodes_one_worker_on_each_and_within_an_hour() -> None:
    assert check_validation() == ""
    assert "is of operators alone" in check_validation(by_operator=False)
    assert "until `berth upgrade finish`" in check_validation(release=0)
    assert "2 to 64 different nodes" in check_validation(validates=("n1", "n1"))
    assert "gang.workers: 3: must be 2" in check_validation(gang={"workers": 3})
    assert "walltime_s: None" in check_validation(walltime_s=None)
    assert "at most 3600" in check_validation(walltime_s=3601)
