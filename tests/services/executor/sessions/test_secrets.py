"""Secrets of a launch come from the tenant's folder, or the launch says that it cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.executor.sessions.secrets import needs_secrets, resolve_secrets
from shared.contracts.agents import Launch
from tests.services.executor.core.agents.history import allocation, running


def launch(**env: str) -> Launch:
    return running().state.workers[allocation(1)].launch.model_copy(update={"env": env})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for tenant, text in (("ada", "mine\n"), ("bob", "his")):
        (tmp_path / tenant).mkdir()
        (tmp_path / tenant / "token").write_text(text)
    (tmp_path / "ada" / "nul").write_text("a\0b")
    return tmp_path


def test_a_secret_is_the_content_of_the_tenants_file(folder: Path) -> None:
    assert needs_secrets(launch(KEY="secret://token")) and not needs_secrets(launch(A="1"))
    resolved = resolve_secrets(launch(KEY="secret://token", A="1"), folder)
    assert (resolved.env, resolved.failure) == ({"KEY": "mine", "A": "1"}, None)


@pytest.mark.parametrize("name", ["absent", "../bob/token", "", "nul", "a/b"])
def test_what_cannot_be_had_fails_the_launch_and_sends_no_variable(folder: Path, name: str) -> None:
    resolved = resolve_secrets(launch(KEY=f"secret://{name}", A="secret://token"), folder)
    assert resolved.env == {} and resolved.failure is not None
    assert resolved.failure.reason == "secret_missing"
    assert "env.KEY" in resolved.failure.detail


def test_without_a_folder_there_is_no_secret() -> None:
    assert resolve_secrets(launch(KEY="secret://token"), None).failure is not None
