"""A pool runs what its backends can run."""

from __future__ import annotations

import pytest

from shared.contracts.job_spec import JobSpec
from shared.contracts.pool_rules import pool_violation
from shared.contracts.pools import PoolConfigured


def pool(*backends: str) -> PoolConfigured:
    return PoolConfigured.model_validate({"partition": 0, "pool": "p", "backends": backends})


@pytest.mark.parametrize(
    ("backend", "spec", "field"),
    [
        ("process", {"command": ["true"]}, "pool"),
        ("agent", {}, "command"),
        ("agent", {"command": ["true"], "simulated": {}}, "simulated"),
        ("agent", {"command": ["true"], "image": "a b"}, "image"),
        ("virtual", {"image": "registry/train:1"}, "image"),
        ("virtual", {"bundle": "sha256:" + "0" * 64}, "bundle"),
    ],
)
def test_the_violation_names_the_field(backend: str, spec: dict[str, object], field: str) -> None:
    violation = pool_violation(JobSpec.model_validate({"name": "j", **spec}), pool(backend))
    assert violation is not None
    assert violation.startswith(f"{field}:")


@pytest.mark.parametrize("backend", ["agent", "virtual"])
def test_a_command_runs_everywhere(backend: str) -> None:
    assert pool_violation(JobSpec(name="j", command=("true",)), pool(backend)) is None
