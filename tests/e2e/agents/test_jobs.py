"""Jobs on a node with an agent: output, exit codes, secrets, gangs, and their end."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.e2e.agents.jobs import POOL, Waiting, berth, output, submit
from tests.e2e.joined import JoinedNode
from tests.e2e.stand import Stand, eventually

pytestmark = pytest.mark.stack


def is_set(stand: Stand, name: str, value: str) -> bool:
    return stand.call("PUT", f"/v1/secrets/{name}", {"value": value}, caller="ada")[0] == 202


def test_a_job_runs_with_its_output_and_exit_code(stand: Stand, node: JoinedNode) -> None:
    job_id = submit(stand, "echo hello; echo there >&2; exit 3")
    row = stand.ended(job_id)
    assert (row["phase"], row["exit_code"], row["nodes"]) == ("failed", 3, ["agent-1"])
    eventually(lambda: len(output(stand, job_id)) == 2)
    for words in (("logs",), ("logs", "-f")):
        lines = berth(stand, *words, job_id).splitlines()
        assert sorted(lines) == ["[1/0] hello", "[1/0] there"]
    shown = next(line for line in berth(stand, "nodes").splitlines() if "agent-1" in line)
    assert "agent" in shown and POOL in shown


def test_the_jobs_of_an_array_run_its_program_that_is_recorded_once(
    stand: Stand, node: JoinedNode
) -> None:
    body = {
        "pool": POOL,
        "array_size": 3,
        "spec": {
            "name": "sweep",
            "gang": {"workers": 1, "gpus_per_worker": 0},
            "command": ["sh", "-c", "echo $GREETING $BERTH_ARRAY_INDEX"],
            "env": {"GREETING": "hello"},
        },
    }
    status, ticket = stand.call("POST", "/v1/jobs", body, caller="ada")
    assert status == 202
    jobs: list[str] = ticket["job_ids"]
    assert [stand.ended(job_id)["phase"] for job_id in jobs] == ["succeeded"] * 3
    expected = [[f"0: hello {index}"] for index in range(3)]
    eventually(lambda: [output(stand, job_id) for job_id in jobs] == expected)


def test_a_missing_program_is_explained_and_not_tried_again(stand: Stand, node: JoinedNode) -> None:
    job_id = submit(stand, ["no-such-program"], retry={"max_attempts": 5})
    row = stand.ended(job_id)
    assert (row["phase"], row["attempt"]) == ("failed", 1)
    why = berth(stand, "why", job_id)
    assert "no-such-program: not in PATH" in why and "other nodes may have it" in why


def test_a_job_gets_its_secrets_and_fails_at_once_without_them(
    stand: Stand, node: JoinedNode, tmp_path: Path
) -> None:
    for name in ("db", "absent"):
        eventually(partial(is_set, stand, name, "sesame"))
    before = submit(stand, "sleep 2")
    there, absent = (
        submit(
            stand,
            f'touch {tmp_path}/{name}; test "$PASS" = sesame',
            env={"PASS": f"secret://{name}"},
            retry={"max_attempts": 5},
            depends_on=[before],
        )
        for name in ("db", "absent")
    )
    assert stand.call("DELETE", "/v1/secrets/absent", caller="ada")[0] == 202
    assert stand.ended(there)["phase"] == "succeeded"
    failed = stand.ended(absent)
    assert (failed["phase"], failed["attempt"]) == ("failed", 1)
    assert failed["failure"]["reason"] == "secret_missing"
    for shown in (berth(stand, "why", absent), berth(stand, "show", absent)):
        assert "a secret is missing: env.PASS: 'absent'; tenant ada has no such secret" in shown
        assert "to do: set it by `berth secrets set NAME`" in shown
    assert "secret_missing" in berth(stand, "jobs", "--failed")
    assert [path.name for path in tmp_path.iterdir()] == ["db"]


def test_the_workers_of_a_gang_find_each_other(stand: Stand, node: JoinedNode) -> None:
    shown = "echo $RANK/$WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT gpu $CUDA_VISIBLE_DEVICES"
    job_id = submit(stand, shown, gang={"workers": 2})
    assert stand.ended(job_id)["phase"] == "succeeded"
    lines = eventually(lambda: both if len(both := output(stand, job_id)) == 2 else None)
    first, second = sorted(lines)
    address = first.split()[3]
    host, _, port = address.partition(":")
    assert host == "127.0.0.1" and int(port) > 0
    assert first.startswith(f"0: 0/2 at {address} gpu ")
    assert second.startswith(f"1: 1/2 at {address} gpu ")
    assert {line.split()[-1] for line in lines} == {"0", "1"}


def test_a_cancelled_job_is_stopped_on_its_node(
    stand: Stand, node: JoinedNode, waiting: Waiting
) -> None:
    berth(stand, "cancel", waiting.job_id)
    assert stand.ended(waiting.job_id)["phase"] == "cancelled"
    eventually(lambda: not waiting.is_alive())
