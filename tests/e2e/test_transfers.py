"""A job with two pools waits in the full one and starts in the other, once, whoever is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.machine.owned_folders import scratch_folder
from tests.e2e.stand import LOCAL_POOL, POOL, Json, Stand, a_stand, eventually

ABSENT = ("failslow", "throttle", "notifier")
SMALL = {"gpus_per_worker": 0, "cpus_per_worker": 0.1, "mem_gib_per_worker": 0.1}
WHOLE_POOL = {"workers": 4, "gpus_per_worker": 8, "cpus_per_worker": 96}
KILLED = ("gateway", "admission", "placement", "projector")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the users of tenants may enter."""
    with scratch_folder("transfers") as folder:
        folder.chmod(0o777)
        yield folder


def submitted(stand: Stand, name: str, command: str, folder: Path) -> str:
    body = {
        "pools": [POOL, LOCAL_POOL],
        "name": name,
        "command": ["sh", "-c", command],
        "gang": SMALL,
        "workdir": str(folder),
    }
    status, ticket = stand.call("POST", "/v1/jobs", body, caller="ada")
    assert status == 202, ticket
    return str(ticket["job_id"])


def fill(stand: Stand) -> str:
    """Let a job of a higher class take the whole virtual pool; return it once it runs."""
    spec = {
        "name": "fills",
        "gang": WHOLE_POOL,
        "priority_class": "high",
        "simulated": {"duration_s": 1e6},
    }
    status, ticket = stand.call("POST", "/v1/jobs", {"pool": POOL, "spec": spec}, caller="bob")
    assert status == 202, ticket
    stand.until(str(ticket["job_id"]), "running")
    return str(ticket["job_id"])


def in_pool(stand: Stand, job_id: str, pool: str) -> Json:
    def there() -> Json | None:
        row = stand.job(job_id)
        return row if row and row["pool"] == pool else None

    return eventually(there)


@pytest.mark.stack
@pytest.mark.parts
def test_jobs_go_where_they_start_first_and_start_once(folder: Path) -> None:
    noted = 'echo "$BERTH_FIRST_JOB_ID" >> starts'
    with a_stand(*ABSENT) as stand:
        preempted = submitted(stand, "preempted", noted, folder)
        stand.until(preempted, "running")
        filling = fill(stand)
        waits = submitted(stand, "waits", noted, folder)
        stays = submitted(stand, "stays", "sleep 3600", folder)
        for _ in range(3):
            for name in KILLED:
                os.kill(stand.pids()[name], signal.SIGKILL)
                time.sleep(0.5)
        for job_id in (preempted, waits):
            row = stand.ended(job_id)
            assert (row["phase"], row["pool"]) == ("succeeded", LOCAL_POOL)
            assert row["spec"]["transferred"]["first_job_id"] == job_id
        assert sorted((folder / "starts").read_text().split()) == sorted((preempted, waits))

        in_pool(stand, stays, LOCAL_POOL)
        stand.until(stays, "running")
        status, answer = stand.call("POST", f"/v1/jobs/{stays}/cancel", {}, caller="ada")
        assert status == 202, answer
        assert stand.ended(stays)["phase"] == "cancelled"

        why = stand.get(f"/v1/jobs/{preempted}/why")
        assert why is not None
        types = [item["type"].split(".")[1] for item in why["items"]]
        assert types.count("placed") == 2
        assert types.count("cancelled") == 1
        assert all(item["until"] is not None for item in why["items"][:-1])
        listed = stand.get("/v1/jobs?tenant=ada")
        assert listed is not None
        names = [row["name"] for row in listed["items"]]
        assert names.count("preempted") == names.count("waits") == names.count("stays") == 1
        stand.call("POST", f"/v1/jobs/{filling}/cancel", {}, caller="bob")
        assert stand.ended(filling)["phase"] == "cancelled"
        assert stand.verify().violations == []
