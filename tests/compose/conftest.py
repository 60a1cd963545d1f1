"""The project that `make compose-up` started; without it these tests are skipped."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator

import pytest

from infra.compose import containers as compose
from infra.compose import project as compose_project
from infra.supervisor.running import OPERATOR_KEY, load
from tests.compose.project import Project, cli
from tests.e2e.stand import Stand, eventually


def reason_to_skip() -> str:
    """Return what is missing: these tests kill containers, so a running project is not enough."""
    if os.environ.get("BERTH_COMPOSE") != "1":
        return "`make compose-test` runs these, against the project of `make compose-up`"
    if not shutil.which("docker"):
        return "docker is not installed"
    if not compose.containers():
        return "`make compose-up` has not been run"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.get_closest_marker("compose")]
    if ours and (reason := reason_to_skip()):
        for item in ours:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def project() -> Iterator[Project]:
    """The project, with a tenant of this run's own: the same data serve several runs."""
    stack = load(compose_project.FOLDER)
    root = (compose_project.FOLDER / OPERATOR_KEY).read_text().strip()
    tenant = f"team-{int(time.time())}"
    cli("tenants", "add", tenant, "--pool", "virtual")
    key = cli("keys", "create", "--tenant", tenant)["key"]
    stand = Stand(stack, {"root": root, "tenant": key})
    eventually(lambda: stand.call("GET", "/v1/jobs", caller="tenant")[0] == 200)
    yield Project(stand, tenant)
