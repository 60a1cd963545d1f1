"""A series has one name for jobs that do the same work, and another for any other work."""

from __future__ import annotations

import pytest

from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.series import SERIES_CHARS, series_of

SPEC = JobSpec(name="llama", command=("python", "train.py"))


def test_jobs_of_one_tenant_name_gpu_type_and_size_are_one_series() -> None:
    other_command = SPEC.model_copy(update={"command": ("python", "train.py", "--seed", "7")})
    first = series_of("acme", SPEC, 2, ["a100", "a100"])
    assert first == series_of("acme", other_command, 2, ["a100"])
    assert len(first) == SERIES_CHARS


@pytest.mark.parametrize(
    ("tenant", "spec", "workers", "gpu_type"),
    [
        ("other", SPEC, 2, "a100"),
        ("acme", JobSpec(name="bert"), 2, "a100"),
        ("acme", SPEC, 3, "a100"),
        ("acme", SPEC, 2, "h100"),
        ("acme", JobSpec(name="llama", gang=Gang(gpus_per_worker=8)), 2, "a100"),
    ],
)
def test_any_other_is_another_series(
    tenant: str, spec: JobSpec, workers: int, gpu_type: str
) -> None:
    series = series_of("acme", SPEC, 2, ["a100"])
    assert series_of(tenant, spec, workers, [gpu_type]) != series
