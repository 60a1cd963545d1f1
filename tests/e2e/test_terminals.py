"""`berth exec` and `berth shell` on a whole stack: what they reach, who may, and who dies."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from cli.errors import NOT_FOUND, REFUSED, UNREACHABLE
from infra.machine.owned_folders import scratch_folder
from infra.supervisor.stack import AGENT, AGENT_EXECUTOR
from tests.e2e.stand import LOCAL_POOL, Stand, a_stand, eventually
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.stack, pytest.mark.parts]
ABSENT = ("failslow", "throttle", "priority")
CLI = [sys.executable, "-P", "-m", "cli"]
MARK = "terminal-test"


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand(*ABSENT, env={"gateway": {"BERTH_KEY_STREAMS": "4"}}) as stand:
        yield stand


@pytest.fixture(scope="module")
def job(stand: Stand) -> Iterator[str]:
    """A job of ada that runs on the node of the stack, in a pool that permits terminals."""
    yield submitted(stand)


def submitted(stand: Stand, **body: object) -> str:
    permit(stand, True)
    spec = {"name": "waits", "command": ["sleep", "900"], "env": {"WORD": "tin"}}
    code, ticket = stand.call(
        "POST", "/v1/jobs", {"pool": LOCAL_POOL, "spec": spec, **body}, caller="ada"
    )
    assert code == 202, ticket
    stand.until(str(ticket["job_id"]), "running")
    return str(ticket["job_id"])


def permit(stand: Stand, permitted: bool) -> None:
    code, ticket = stand.call("PATCH", f"/v1/pools/{LOCAL_POOL}", {"terminals": permitted})
    assert code == 202, ticket
    assert stand.answer(ticket["command_id"])["accepted"]


def environment(stand: Stand, caller: str) -> dict[str, str]:
    root = Path(__file__).parents[2]
    path = os.pathsep.join(map(str, (root, root / "client")))
    return {
        **os.environ,
        "BERTH_URL": stand.stack.gateway,
        "BERTH_KEY": stand.keys[caller],
        "PYTHONPATH": path,
        "TERM": "vt100",
    }


def run(
    stand: Stand, *words: str, caller: str = "ada", given: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CLI, *words],
        env=environment(stand, caller),
        input=given,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )


def started(stand: Stand, *words: str, caller: str = "ada") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*CLI, *words],
        env=environment(stand, caller),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def in_terminal(stand: Stand, job: str, script: str) -> subprocess.Popen[str]:
    """Run a script in the job's worker; return once it has printed `up`."""
    process = started(stand, "exec", job, "--", "sh", "-c", f": {MARK}; echo up; {script}")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n", process.communicate()
    return process


def programs_with(word: str) -> list[psutil.Process]:
    """Return the processes that have the word as an argument."""
    processes = psutil.process_iter(["cmdline"])
    return [process for process in processes if word in (process.info["cmdline"] or ())]


def stands_still(program: psutil.Process) -> bool:
    """Return whether a program that has written something writes no more within a second."""
    before = program.io_counters().write_chars
    time.sleep(1)
    return 0 < before == program.io_counters().write_chars


def marked() -> list[psutil.Process]:
    """Return living programs of terminals of this test."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if any(word.startswith(f": {MARK};") for word in process.info["cmdline"] or ())
        and "cli" not in process.info["cmdline"]
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def audit(stand: Stand, action: str) -> list[dict[str, Any]]:
    page = stand.get(f"/v1/audit?action={action}")
    return list(page["items"]) if page else []


def test_a_command_runs_as_the_worker_does(stand: Stand, job: str) -> None:
    script = "id -u; echo $WORD $BERTH_JOB_ID; pwd; cat; echo oh >&2; exit 4"
    done = run(stand, "exec", job, "--", "sh", "-c", script, given="one\ntwo\n")
    assert done.returncode == 4, done
    uid, word, folder, *rest = done.stdout.splitlines()
    worker = next(
        p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "900"]
    )
    assert int(uid) == worker.uids().real
    assert word == f"tin {job}" and folder.endswith(f"{job}.1.0")
    assert rest == ["one", "two"] and done.stderr == "oh\n"
    assert run(stand, "exec", job[:8], "--", "true").returncode == 0


def test_openings_and_ends_are_in_the_audit(stand: Stand, job: str) -> None:
    assert run(stand, "exec", job, "--", "sh", "-c", "exit 9").returncode == 9
    closed = eventually(
        lambda: [
            data for data in records(stand, "terminal.closed.v1") if data.get("exit_code") == 9
        ]
    )
    opened = next(
        data
        for data in records(stand, "terminal.opened.v1")
        if data["terminal_id"] == closed[0]["terminal_id"]
    )
    assert (opened["job_id"], opened["program"], opened["worker"]) == (job, "sh", 0)
    entries = eventually(lambda: audit(stand, "terminal.open.v1"))
    assert entries[0]["principal"] == opened["opened_by"]


def records(stand: Stand, type_: str) -> list[dict[str, Any]]:
    """Return the data of the events of a type since the start."""
    done = run(stand, "events", "--types", type_, "--since", "start", "--json", caller="root")
    return [event["data"] for event in json.loads(done.stdout)]


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (["no-such-program"], 127, "No such file"),
        (["/etc/passwd"], 126, "Permission denied"),
        (["sh", "-c", "kill -9 $$"], 137, ""),
    ],
)
def test_what_cannot_run_says_so(
    stand: Stand, job: str, command: list[str], code: int, text: str
) -> None:
    done = run(stand, "exec", job, "--", *command)
    assert done.returncode == code and text in done.stderr, done


def test_who_may_not_and_what_cannot_be(stand: Stand, job: str) -> None:
    other = run(stand, "exec", job, "--", "true", caller="bob")
    assert other.returncode == NOT_FOUND, other
    missing = run(stand, "exec", job, "--worker", "3", "--", "true")
    assert "worker: 3; job" in missing.stderr
    virtual = str(stand.submit(simulated={"duration_s": 600})["job_id"])
    stand.until(virtual, "running")
    refused = run(stand, "exec", virtual, "--", "true")
    assert refused.returncode == REFUSED and "has virtual nodes" in refused.stderr
    stand.call("DELETE", f"/v1/jobs/{virtual}", caller="ada")
    stand.ended(virtual)
    ended = run(stand, "exec", virtual, "--", "true")
    assert ended.returncode == REFUSED and "cancelled; a running one is required" in ended.stderr
    code, ticket = stand.call(
        "POST", "/v1/tenants/ada/keys", {"role": "submitter", "user": "carol"}
    )
    assert code == 202 and stand.answer(ticket["command_id"])["accepted"]
    stand.keys["carol"] = str(ticket["key"])
    others = run(stand, "exec", job, "--", "true", caller="carol")
    assert others.returncode == REFUSED and "must be 'carol'" in others.stderr


def test_a_pool_that_does_not_permit_it(stand: Stand, job: str) -> None:
    """Open ones end, and no other one is opened."""
    opened = in_terminal(stand, job, "sleep 600")
    permit(stand, False)
    try:
        refused = run(stand, "exec", job, "--", "true")
        assert refused.returncode == REFUSED
        assert f"berth pools set {LOCAL_POOL} terminals=true" in refused.stderr
        _, error = opened.communicate(timeout=PATIENCE_S)
        assert "does not permit it any more" in error and opened.returncode == 1
    finally:
        permit(stand, True)
    eventually(lambda: not marked())


def test_a_key_has_a_bound_of_terminals(stand: Stand, job: str) -> None:
    opened = [in_terminal(stand, job, "cat") for _ in range(4)]
    refused = run(stand, "exec", job, "--", "true")
    assert refused.returncode == UNREACHABLE and "4 streams are open" in refused.stderr
    for process in opened:
        process.communicate("", timeout=PATIENCE_S)
    assert run(stand, "exec", job, "--", "true").returncode == 0


def test_a_user_who_goes_takes_the_programs_along(stand: Stand, job: str) -> None:
    process = in_terminal(stand, job, "trap '' HUP TERM; sleep 600; sleep 600")
    assert marked()
    process.kill()
    process.communicate()
    eventually(lambda: not marked())
    assert stand.job(job)["phase"] == "running"  # type: ignore[index]


def test_a_reader_who_stands_still_holds_up_the_program_alone(stand: Stand, job: str) -> None:
    process = in_terminal(stand, job, "exec head -c 300000000 /dev/zero")
    [program] = eventually(lambda: programs_with("300000000"))
    eventually(lambda: stands_still(program))
    before = program.io_counters().write_chars
    assert before < 60_000_000
    assert run(stand, "exec", job, "--", "echo", "still").stdout == "still\n"
    assert program.io_counters().write_chars - before < 4_000_000
    process.kill()
    process.communicate()


@pytest.mark.parametrize("name", [AGENT, AGENT_EXECUTOR, "gateway"])
def test_whoever_is_killed_the_terminal_ends_and_another_one_opens(
    stand: Stand, job: str, name: str
) -> None:
    process = in_terminal(stand, job, "sleep 600; sleep 600")
    before = stand.pids()[name]
    os.kill(before, signal.SIGKILL)
    _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (1, UNREACHABLE) and "cut off" in error, error
    eventually(lambda: stand.pids()[name] not in (0, before))
    eventually(lambda: not marked())
    assert stand.until(job, "running")["attempt"] == 1
    eventually(lambda: run(stand, "exec", job, "--", "true").returncode == 0)


def test_it_ends_with_its_job(stand: Stand) -> None:
    job = submitted(stand)
    process = in_terminal(stand, job, "trap '' HUP TERM; sleep 600; sleep 600")
    stand.call("DELETE", f"/v1/jobs/{job}", caller="ada")
    _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (1, 137), error
    assert not marked()


def test_a_shell_has_a_terminal_and_its_job_ends_with_it(stand: Stand) -> None:
    pid, master = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [*CLI, "shell", "--pool", LOCAL_POOL], environment(stand, "ada"))
    seen = bytearray()

    def until(text: str) -> None:
        ends_s = time.monotonic() + PATIENCE_S
        while text.encode() not in seen:
            assert time.monotonic() < ends_s, seen
            seen.extend(os.read(master, 4096))

    until("submitted: ")
    until("$ ")
    os.write(master, b"echo $((6 * 7)) $TERM; trap 'echo caught' INT; sleep 600\n")
    until("42 vt100\r\n")
    time.sleep(0.5)
    os.write(master, b"\x03")
    until("caught")
    os.write(master, b"exit 6\n")
    _, status = os.waitpid(pid, 0)
    os.close(master)
    assert os.waitstatus_to_exitcode(status) == 6, seen
    job = seen.decode().split("submitted: ")[1].split()[0]
    assert stand.ended(job)["phase"] == "cancelled"


def test_a_shell_that_is_killed_leaves_a_job_that_ends_by_itself() -> None:
    """Its worker looks for terminals; here at once, in place of each 5 s."""
    from cli.commands.terminals import WAITS

    with scratch_folder("waits") as folder:
        quick = WAITS.replace("sleep 5", "sleep 0.05")
        held = subprocess.Popen(
            ["sleep", "600"], env={"BERTH_TERMINAL": "x"}, cwd=folder, stdin=subprocess.DEVNULL
        )
        waiting = subprocess.Popen(["sh", "-c", quick], cwd=folder, env={"PATH": os.defpath})
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(2)
        held.kill()
        held.wait()
        assert waiting.wait(PATIENCE_S) == 0
