"""Settings of an executor that are given by tenant, and folders that it shares with nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.executor.settings import ExecutorSettings


def settings(**fields: object) -> ExecutorSettings:
    own = {"kafka": "127.0.0.1:9", "data": Path("/data"), "executor_id": "e1"}
    return ExecutorSettings.model_validate({**own, **fields})


def test_users_and_accounts_of_slurm_are_given_by_tenant() -> None:
    given = settings(
        slurm_user="batch",
        slurm_users="vision:ada",
        slurm_account="lab",
        slurm_accounts="vision:cv,speech:asr",
    )
    assert given.slurm_user_of("vision") == "ada" and given.slurm_user_of("other") == "batch"
    accounts = [given.slurm_account_of(tenant) for tenant in ("vision", "speech", "other")]
    assert accounts == ["cv", "asr", "lab"]


@pytest.mark.parametrize("name", ["slurm_hooks", "slurm_folder"])
def test_a_folder_that_nodes_share_is_an_absolute_path(name: str) -> None:
    fields = {"slurm_pool": "slurm", "slurm_folder": "/shared/berth"}
    assert settings(**fields, slurm_hooks="/shared/hooks").slurm_hooks == Path("/shared/hooks")
    with pytest.raises(ValueError, match="an absolute path is needed"):
        settings(**{**fields, name: "shared"})
