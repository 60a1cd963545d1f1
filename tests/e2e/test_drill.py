"""A drill on real agents: one of four DDP workers is slowed, and fail-slow suspects that one.

The commands are those of docs/operations/drills.md; the times are those of the DDP hook.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from infra.supervisor.stack import AGENT as OWN_AGENT
from tests.e2e.agents.jobs import berth
from tests.e2e.joined import JoinedNode, a_joined_node
from tests.e2e.page_blocks import blocks_of, run_block
from tests.e2e.stand import Json, Stand, a_stand, eventually
from tests.e2e.test_training import USER, missing
from tests.pages import ROOT

NODES = ("ddp-0", "ddp-1", "ddp-2", "ddp-3")
POOL = "gpu"
WITHIN_S = 300.0
BATCH = "512"
"""Iterations of tens of ms, in which several periods of the stops fit."""
ALLOW, DRILL = blocks_of("operations/drills.md")
SLOW, SHOW, END = DRILL.splitlines()

pytestmark = [pytest.mark.parts, pytest.mark.stack]


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    if reason := missing():
        pytest.skip(reason)
    with a_stand(OWN_AGENT, "throttle", tls=True) as stand:
        berth(stand, "pools", "add", POOL, "backends=agent")
        yield stand


@pytest.fixture(scope="module")
def nodes(stand: Stand) -> Iterator[dict[str, JoinedNode]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(a_joined_node(stand, POOL, name, gpus=1, **USER))
            for name in NODES
        }


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that tenants may write to, with the example and the reporter."""
    with tempfile.TemporaryDirectory(prefix="berth-shared-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o777)
        shutil.copy(ROOT / "docs" / "examples" / "reported_ddp.py", folder)
        shutil.copytree(ROOT / "reporter" / "berth_reporter", folder / "berth_reporter")
        yield folder


def submit(stand: Stand, shared: Path) -> str:
    variables = (f"PYTHONPATH={shared}", "GLOO_SOCKET_IFNAME=lo", "OMP_NUM_THREADS=1")
    env = " ".join(f"--env {variable}" for variable in variables)
    line = f"berth submit --json --tenant ada --pool {POOL} --workers 4 --gpus 1 {env}"
    command = f"python3 reported_ddp.py 1000000 {BATCH}"
    printed = run_block(stand, f"{line} --workdir {shared} -- {command}", {})
    return str(json.loads(printed)["job_id"])


def suspected(stand: Stand, job_id: str) -> list[Json]:
    """Return the faults of nodes; on a busy machine the job as a whole is suspected as well."""
    rows: list[Json] = json.loads(berth(stand, "faults", "list", "--json"))
    return [row for row in rows if row["job_id"] == job_id and row["node_id"]]


def drilled(stand: Stand, line: str, node: str, **changes: str) -> str:
    return run_block(stand, line, {'"$NODE"': node, **changes})


def test_the_worker_that_a_drill_slows_is_suspected(
    stand: Stand, nodes: dict[str, JoinedNode], shared: Path
) -> None:
    job_id = submit(stand, shared)
    row = stand.until(job_id, "running")
    assert sorted(row["nodes"]) == sorted(nodes)
    slow = row["nodes"][2]
    run_block(stand, ALLOW, {})
    begun = drilled(stand, SLOW, slow, **{"60s": "20m", "2.5": "5"})
    assert begun == f"{slow}: slow 5x for 20m\n"
    assert "slow" in drilled(stand, SHOW.partition(" #")[0], slow)
    rows = eventually(lambda: suspected(stand, job_id), WITHIN_S)
    assert {fault["node_id"] for fault in rows} == {slow}
    assert drilled(stand, END, slow) == f"{slow}: the injected fault is over\n"
    eventually(lambda: suspected(stand, job_id)[0]["state"] == "cleared", WITHIN_S)
    (shared / "finish").touch()
    assert stand.ended(job_id, WITHIN_S)["phase"] == "succeeded"
    audited: list[dict[str, Any]] = json.loads(berth(stand, "audit", "--json"))
    assert {"fault.inject.v1", "fault.end-injection.v1"} <= {entry["action"] for entry in audited}


def test_the_ledgers_are_sound(stand: Stand) -> None:
    assert stand.verify().violations == []
