"""Secrets of a launch come from the tenant's folder, or the launch says that it cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.executor.agents.secrets import needs_secrets, resolve_secrets
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
    (tmp_path / "ada" / "bytes").write_bytes(b"\xff")
    (tmp_path / "ada" / "loop").symlink_to("loop")
    (tmp_path / "ada" / "folder").mkdir()
    return tmp_path


def test_a_secret_is_the_content_of_the_tenants_file(folder: Path) -> None:
    assert needs_secrets(launch(KEY="secret://token")) and not needs_secrets(launch(A="1"))
    resolved = resolve_secrets(launch(KEY="secret://token", A="1"), folder)
    assert (resolved.env, resolved.failure) == ({"KEY": "mine", "A": "1"}, None)


@pytest.mark.parametrize("name", ["absent", "../bob/token", "", "a/b", "folder", "nul", "bytes"])
def test_what_cannot_be_had_fails_the_job_for_good_and_sends_no_variable(
    folder: Path, name: str
) -> None:
    resolved = resolve_secrets(launch(KEY=f"secret://{name}", A="secret://token"), folder)
    assert resolved.env == {} and resolved.failure is not None
    reason = "secret_unusable" if name in ("nul", "bytes") else "secret_missing"
    assert (resolved.failure.reason, resolved.failure.permanent) == (reason, True)
    assert resolved.failure.detail.startswith(f"env.KEY: {name!r}; ")


def test_a_secret_that_cannot_be_read_now_is_tried_again(folder: Path) -> None:
    failure = resolve_secrets(launch(KEY="secret://loop"), folder).failure
    assert failure is not None
    assert (failure.reason, failure.permanent) == ("secret_unreadable", False)
    assert failure.detail.startswith("env.KEY: 'loop': ")


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("absent", "there is no file ada/absent in the folder of secrets"),
        ("../bob/token", "letters, digits and ._- are allowed"),
    ],
)
def test_a_missing_secret_names_the_file_below_the_folder_and_no_path_of_the_machine(
    folder: Path, name: str, detail: str
) -> None:
    failure = resolve_secrets(launch(KEY=f"secret://{name}"), folder).failure
    assert failure is not None
    assert failure.detail == f"env.KEY: {name!r}; {detail}"


def test_without_a_folder_there_is_no_secret() -> None:
    failure = resolve_secrets(launch(KEY="secret://token"), None).failure
    assert failure is not None and "BERTH_SECRETS" in failure.detail
