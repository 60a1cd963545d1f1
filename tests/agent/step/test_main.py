"""A step and its worker, as real processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth_agent.linux import cgroups, files, processes
from berth_agent.linux.hierarchies import open_hierarchies
from berth_agent.step.outcome import CANNOT_RUN
from tests.agent.step_bench import AGENT, StepBench, until

pytestmark = pytest.mark.process

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the user of a worker")
OTHER_UID = 65534
NAMESPACES = pytest.mark.parametrize("pid_namespace", [True, False])


@pytest.fixture
def bench() -> Iterator[StepBench]:
    with tempfile.TemporaryDirectory(prefix="berth-step-") as name:
        Path(name).chmod(0o755)
        bench = StepBench(Path(name))
        yield bench
        bench.close()


@pytest.fixture
def limited(bench: StepBench) -> Iterator[StepBench]:
    """A bench whose worker has 96 MiB, one core and 64 processes."""
    hierarchies = open_hierarchies(f"berth-test-{os.getpid()}")
    if not hierarchies.limits:
        pytest.skip("no hierarchy of control groups is writable here")
    bench.values["cgroups"] = cgroups.create(hierarchies.parents, "worker", 1.0, 96 * 2**20, 64)
    yield bench
    bench.close()
    cgroups.remove(hierarchies.parents)


def failure(state: dict[str, Any]) -> tuple[str, str, bool]:
    reason = state["failure"] or {"reason": "", "detail": "", "permanent": False}
    return reason["reason"], reason["detail"], reason["permanent"]


def test_nothing_runs_before_the_order_to_start(bench: StepBench) -> None:
    bench.values["argv"] = ["sh", "-c", "touch ran"]
    bench.prepare()
    assert bench.phase == "prepared" and not (bench.work / "ran").exists()
    bench.go()
    end = bench.end()
    assert (end["exit_code"], end["started"], end["stopped"], end["failure"]) == (
        0,
        True,
        False,
        None,
    )
    assert (bench.work / "ran").exists()


@NAMESPACES
@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_the_exit_code_is_the_programs(bench: StepBench, pid_namespace: bool, code: int) -> None:
    bench.values["pid_namespace"] = pid_namespace
    bench.start(f"echo last words; exit {code}")
    end = bench.end()
    assert end["exit_code"] == code
    assert failure(end)[:2] == (("exit_code", f"exit code {code}") if code else ("", ""))
    if code:
        assert end["failure"]["output"] == ["last words"]


@NAMESPACES
@pytest.mark.parametrize("name", ["SEGV", "ABRT", "KILL"])
def test_a_program_that_a_signal_ends(bench: StepBench, pid_namespace: bool, name: str) -> None:
    bench.values["pid_namespace"] = pid_namespace
    bench.start(f"kill -{name} $$")
    end = bench.end()
    assert end["exit_code"] == 128 + signal.Signals[f"SIG{name}"]
    assert failure(end) == ("signal", f"SIG{name}", False)


@NAMESPACES
def test_sigterm_ends_a_program_that_has_no_handler(bench: StepBench, pid_namespace: bool) -> None:
    bench.values["pid_namespace"] = pid_namespace
    bench.start("echo up; exec sleep 600")
    bench.line("up")
    bench.stop(600.0)
    end = bench.end()
    assert (end["exit_code"], end["stopped"]) == (128 + signal.SIGTERM, True)


def test_a_program_that_handles_sigterm_ends_within_its_grace(bench: StepBench) -> None:
    bench.start("trap 'echo saved; exit 9' TERM; echo up; while :; do sleep 0.02; done")
    bench.line("up")
    bench.stop(600.0)
    assert bench.end()["exit_code"] == 9
    assert "saved" in bench.output()


@NAMESPACES
def test_a_program_that_ignores_sigterm_is_killed_after_its_grace(
    bench: StepBench, pid_namespace: bool
) -> None:
    bench.values["pid_namespace"] = pid_namespace
    bench.start("trap 'echo caught' TERM; echo up; while :; do sleep 0.02; done")
    bench.line("up")
    bench.stop(4.0)
    assert bench.end()["exit_code"] == 128 + signal.SIGKILL
    assert "caught" in bench.output()


def test_a_second_stop_shortens_the_grace(bench: StepBench) -> None:
    bench.start("trap '' TERM; echo up; while :; do sleep 0.02; done")
    bench.line("up")
    bench.stop(3600.0)
    until(lambda: bench.phase == "stopping")
    bench.stop(0.0)
    assert bench.end()["exit_code"] == 128 + signal.SIGKILL


@NAMESPACES
def test_what_a_program_leaves_behind_is_killed(bench: StepBench, pid_namespace: bool) -> None:
    """One child in its group, one in a session of its own, one that also hides its environment."""
    bench.values["pid_namespace"] = pid_namespace
    os.mkfifo(bench.work / "fifo")
    mark = f"6{os.getpid()}"
    bench.start(
        f"sleep 600 & setsid sh -c 'echo session; exec sleep 601' & "
        f"setsid env -i /bin/sh -c 'echo hidden; exec sleep {mark}' & read line < fifo"
    )
    bench.line("session")
    bench.line("hidden")
    until(lambda: len(pids_of(f"sleep {mark}")) == 1)
    (bench.work / "fifo").write_text("end\n")
    assert bench.end()["exit_code"] == 0
    assert bench.living() == [] and not pids_of(f"sleep {mark}")


def test_an_escaped_grandchild_dies_when_the_step_is_killed(bench: StepBench) -> None:
    bench.start("setsid sh -c 'echo escaped; exec sleep 600' & echo up; sleep 600")
    bench.line("up")
    bench.line("escaped")
    assert len(bench.living()) >= 3
    bench.kill_step()
    until(lambda: bench.living() == [])
    assert bench.phase == "running"


def test_without_a_namespace_the_program_dies_with_its_step(bench: StepBench) -> None:
    """One that escaped lives on: the agent has to sweep, and the node says `fencing: advice`."""
    bench.values["pid_namespace"] = False
    bench.start("setsid sh -c 'echo escaped $$; exec sleep 600' & echo up $$; exec sleep 600")
    program, escaped = int(bench.line("up").split()[1]), int(bench.line("escaped").split()[1])
    bench.kill_step()
    until(lambda: not alive(program))
    assert bench.living() == [escaped]


def test_the_deadline_ends_a_worker_that_ignores_sigterm(bench: StepBench) -> None:
    bench.values["grace_s"] = 5.0
    bench.start("trap 'echo caught' TERM; echo up; while :; do sleep 0.02; done")
    bench.line("up")
    bench.renew(5.5)
    end = bench.end()
    assert end["exit_code"] == 128 + signal.SIGKILL
    assert failure(end)[0] == "fenced" and "caught" in bench.output()


def test_a_deadline_that_is_extended_in_time_ends_nothing(bench: StepBench) -> None:
    bench.values["grace_s"] = 0.0
    bench.renew(60.0)
    os.mkfifo(bench.work / "fifo")
    bench.start("echo up; read line < fifo; echo went on")
    bench.line("up")
    bench.renew(3600)
    until(lambda: bench.state["ticks"] > 0)
    (bench.work / "fifo").write_text("go\n")
    assert bench.end()["exit_code"] == 0


def test_another_incarnation_ends_the_worker(bench: StepBench) -> None:
    bench.start("echo up; exec sleep 600")
    bench.line("up")
    bench.renew(3600, "b" * 32)
    end = bench.end()
    assert failure(end)[0] == "fenced" and end["exit_code"] == 128 + signal.SIGKILL


@pytest.mark.parametrize("lease", [(-1.0, "a" * 32), (3600.0, "b" * 32)])
def test_a_worker_is_never_started_without_a_lease(
    bench: StepBench, lease: tuple[float, str]
) -> None:
    bench.values["argv"] = ["touch", "ran"]
    bench.renew(*lease)
    bench.prepare()
    bench.go()
    end = bench.end()
    assert (end["started"], failure(end)[0]) == (False, "fenced")
    assert not (bench.work / "ran").exists()


def test_a_tombstone_before_the_start_is_final(bench: StepBench) -> None:
    bench.values["argv"] = ["touch", "ran"]
    bench.prepare()
    bench.stop(30.0)
    bench.go()
    end = bench.end()
    assert (end["started"], end["stopped"], end["exit_code"]) == (False, True, None)
    assert not (bench.work / "ran").exists()


def test_a_tombstone_that_precedes_the_step_is_final(bench: StepBench) -> None:
    """A restarted agent may call a forked step never started only by leaving a tombstone."""
    bench.values["argv"] = ["touch", "ran"]
    bench.stop(0.0)
    bench.go()
    bench.launch()
    assert bench.end()["started"] is False
    assert not (bench.work / "ran").exists()


def test_a_tombstone_that_races_with_the_start_wins_or_ends_it(bench: StepBench) -> None:
    """The lock orders them: the step started first and is ended, or it never starts."""
    bench.values["argv"] = ["sleep", "600"]
    bench.prepare()
    lock = files.lock(str(bench.folder / "lock"), wait=True)
    assert lock is not None
    bench.go()
    files.write_json(str(bench.folder / "tombstone"), {"grace_s": 0, "reason": "stopped"})
    os.close(lock)
    assert bench.end()["started"] is False


def test_a_second_step_in_a_folder_does_nothing(bench: StepBench) -> None:
    bench.start("echo up; exec sleep 600")
    bench.line("up")
    before = bench.state
    with pytest.raises(Exception, match="returned non-zero exit status 1"):
        bench.launch()
    assert bench.state == before
    bench.stop(0.0)
    bench.end()
    until(lambda: not files.is_locked(str(bench.folder / "alive")))
    with pytest.raises(Exception, match="returned non-zero exit status 1"):
        bench.launch()
    assert bench.phase == "dead"


@NAMESPACES
def test_before_the_walltime_a_training_is_warned_and_goes_on(
    bench: StepBench, pid_namespace: bool
) -> None:
    """The program that handles SIGUSR1 gets it, also below a shell; another one is not ended."""
    bench.values |= {"walltime_s": 8.0, "grace_s": 600.0, "pid_namespace": pid_namespace}
    training = "trap 'echo saved' USR1; echo up; while :; do sleep 0.02; done"
    bench.start(f'sh -c "{training}" & exec sleep 600')
    bench.line("saved")
    assert "; SIGUSR1 is sent to " in bench.line("berth: the walltime of 8 s ")
    assert bench.phase == "running" and len(bench.living()) >= 2
    bench.stop(0.0)
    assert bench.end()["exit_code"] == 128 + signal.SIGKILL


def test_the_walltime_ends_a_worker_after_a_warning(bench: StepBench) -> None:
    bench.values |= {"walltime_s": 5.0, "grace_s": 600.0}
    bench.start("trap 'echo saved; exit 0' TERM; while :; do sleep 0.02; done")
    end = bench.end()
    assert failure(end) == ("walltime", "the walltime of 5 s is over", False)
    assert "saved" in bench.output()
    assert "berth: the walltime of 5 s " in bench.output()


@pytest.mark.parametrize(
    ("argv", "cwd", "expected"),
    [
        (["no-such-python", "x"], None, ("command_missing", "no-such-python: not in PATH")),
        (["./train"], None, ("command_missing", "./train: not in /")),
        (
            ["/opt/no/python"],
            None,
            ("command_missing", "/opt/no/python: no such file on this node"),
        ),
        (["/etc"], None, ("command_missing", "/etc: is a directory")),
        (["/etc/passwd"], None, ("command_forbidden", "/etc/passwd: user")),
        (["true"], "/no/such/place", ("workdir_missing", "/no/such/place: No such file")),
    ],
)
def test_a_start_that_cannot_work_says_so(
    bench: StepBench, argv: list[str], cwd: str | None, expected: tuple[str, str]
) -> None:
    bench.values |= {"argv": argv, "cwd": cwd or bench.values["cwd"]}
    bench.prepare()
    end = bench.end()
    reason, detail, permanent = failure(end)
    assert (reason, permanent, end["started"]) == (expected[0], True, False)
    assert detail.startswith(expected[1])


@pytest.mark.parametrize(
    ("first", "named"),
    [
        ("#!/no/such/python -u\n", "'/no/such/python' does not exist on this node"),
        ("#!/bin/sh\r\n", "'/bin/sh\\r' does not exist on this node; its lines end with CR LF"),
    ],
)
def test_a_script_without_its_interpreter_names_it(
    bench: StepBench, first: str, named: str
) -> None:
    program = bench.work / "script"
    program.write_bytes(f"{first}echo up\n".encode())
    program.chmod(0o755)
    bench.values["argv"] = [str(program)]
    bench.prepare()
    reason, detail, permanent = failure(bench.end())
    assert (reason, permanent) == ("command_missing", True)
    assert detail == f"{program}: its interpreter {named}"


def test_a_file_that_the_kernel_cannot_execute_is_named(bench: StepBench) -> None:
    program = bench.work / "program"
    program.write_text("neither a binary nor a script\n")
    program.chmod(0o755)
    bench.values["argv"] = [str(program)]
    bench.prepare()
    bench.go()
    end = bench.end()
    expected = ("command_unusable", f"{program}: Exec format error", True)
    assert (failure(end), end["exit_code"]) == (expected, CANNOT_RUN)


@as_root
@pytest.mark.parametrize("private", [False, True])
def test_a_directory_that_the_user_may_not_enter_is_refused(
    bench: StepBench, private: bool
) -> None:
    bench.work.chmod(0o700)
    bench.values |= {"argv": ["true"], "uid": 65534, "gid": 65534, "private": private}
    bench.prepare()
    reason, detail, permanent = failure(bench.end())
    expected = ("node_folder_closed", False) if private else ("workdir_forbidden", True)
    assert (reason, permanent) == expected
    assert detail == f"{bench.work}: user 65534 may not enter {bench.work}"


@as_root
def test_the_uppermost_closed_folder_above_a_directory_is_named(bench: StepBench) -> None:
    below = bench.work / "data" / "set"
    below.mkdir(parents=True)
    below.parent.chmod(0o700)
    bench.values |= {"argv": ["true"], "uid": 65534, "gid": 65534, "cwd": str(below)}
    bench.prepare()
    assert failure(bench.end())[:2] == (
        "workdir_forbidden",
        f"{below}: user 65534 may not enter {below.parent}",
    )


@as_root
@NAMESPACES
def test_a_worker_has_its_user_and_dies_with_its_step(
    bench: StepBench, pid_namespace: bool
) -> None:
    """The kernel clears the death signal at setuid: it is set after it."""
    bench.values |= {"uid": 65534, "gid": 65534, "pid_namespace": pid_namespace}
    bench.start("echo $(id -u) $(id -g) $(id -G); exec sleep 600")
    assert bench.line("65534") == "65534 65534 65534"
    bench.kill_step()
    until(lambda: bench.living() == [])


@as_root
def test_without_root_a_user_namespace_lets_the_kernel_fence(bench: StepBench) -> None:
    """As an agent without rights would start it, by the system's Python, which all may read."""
    python = "/usr/bin/python3"
    if not may_unshare(python):
        pytest.skip("this kernel gives users no namespaces, or its Python is too old")
    shutil.copytree(AGENT / "berth_agent", bench.folder.parent / "package" / "berth_agent")
    for path in [bench.folder, bench.work]:
        os.chown(path, OTHER_UID, OTHER_UID)
    bench.launch_as = (OTHER_UID, python, bench.folder.parent / "package")
    bench.start("setsid sh -c 'echo escaped $(id -u); exec sleep 600' & exec sleep 600")
    assert bench.line("escaped") == f"escaped {OTHER_UID}"
    bench.kill_step()
    until(lambda: bench.living() == [])


def may_unshare(python: str) -> bool:
    code = "import sys; sys.exit(sys.version_info < (3, 11))"
    command = ["unshare", "--user", "--pid", "--fork", python, "-c", code]
    return subprocess.run(command, user=OTHER_UID, group=OTHER_UID, check=False).returncode == 0


def test_a_program_in_a_namespace_sees_its_own_processes_alone(bench: StepBench) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting /proc needs root")
    bench.start("ls /proc | grep -c '^[0-9]'; echo pid $$ $(cut -d' ' -f1 /proc/self/stat)")
    bench.end()
    assert int(bench.output().splitlines()[0]) < 6


def test_variables_of_the_order_to_start_are_added(bench: StepBench) -> None:
    bench.values["argv"] = ["/usr/bin/env"]
    bench.prepare()
    bench.go(MASTER_PORT="23456")
    bench.end()
    assert "MASTER_PORT=23456" in bench.output().splitlines()


def test_no_descriptor_of_the_step_reaches_the_program(bench: StepBench) -> None:
    bench.start("ls /proc/self/fd; cat /proc/self/status | grep -E 'SigIgn|SigBlk'")
    bench.end()
    *descriptors, blocked, ignored = bench.output().split("\n")[:-1]
    assert descriptors == ["0", "1", "2", "3"]
    assert int(blocked.split()[1], 16) == 0
    # Make leaves the two signals that the C library keeps for itself ignored: none can be reset.
    assert int(ignored.split()[1], 16) & 0x7FFFFFFF == 0


def test_the_output_is_capped(bench: StepBench) -> None:
    bench.values["output_bytes"] = 64 * 1024
    bench.start("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")
    bench.end()
    lines = bench.output().splitlines()
    assert len(bench.output()) <= 64 * 1024
    assert lines[0] == "line 0" and lines[-1] == "line 19999"
    for segment in bench.folder.glob("output.log.*"):
        first = segment.read_text().splitlines()[0]
        assert first == f"line {segment.name.rsplit('.', 1)[1]}"


def test_a_prolog_runs_before_and_an_epilog_after_the_worker(
    bench: StepBench, tmp_path: Path
) -> None:
    for name in ("prolog", "epilog"):
        hook = tmp_path / name
        hook.write_text(f"#!/bin/sh\necho {name} of $BERTH_JOB_ID in $BERTH_WORKDIR\n")
        hook.chmod(0o755)
        bench.values[name] = str(hook)
    bench.values["hook_env"]["BERTH_JOB_ID"] = "j1"
    # That of an image is not the one of its engine.
    bench.values["workdir"] = "/data"
    bench.start("echo work")
    bench.end()
    lines = ["prolog of j1 in /data", "work", "epilog of j1 in /data"]
    assert bench.output().splitlines() == lines


def test_notes_of_the_agent_come_before_the_output(bench: StepBench) -> None:
    bench.values["notes"] = ["login shell: no end within 15 s; its variables are left out"]
    bench.start("echo work")
    bench.end()
    assert bench.output().splitlines() == [f"berth: {bench.values['notes'][0]}", "work"]


def test_an_epilog_runs_although_the_step_was_killed(bench: StepBench, tmp_path: Path) -> None:
    hook = tmp_path / "epilog"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/cleaned\n")
    hook.chmod(0o755)
    bench.values["epilog"] = str(hook)
    bench.start("echo up; exec sleep 600")
    bench.line("up")
    bench.kill_step()
    until((tmp_path / "cleaned").exists)


def test_a_prolog_that_prints_endlessly_is_ended_at_its_limit(
    bench: StepBench, tmp_path: Path
) -> None:
    hook = tmp_path / "prolog"
    hook.write_text("#!/bin/sh\nyes a & yes b & yes c & exec yes d\n")
    hook.chmod(0o755)
    bench.values |= {"prolog": str(hook), "argv": ["true"], "hook_s": 0.5}
    bench.launch()
    assert failure(bench.end()) == ("prolog_failed", f"{hook}: no end within 0.5 s", False)


def test_a_prolog_that_fails_refuses_the_start(bench: StepBench, tmp_path: Path) -> None:
    hook = tmp_path / "prolog"
    hook.write_text("#!/bin/sh\necho no GPU answers; exit 3\n")
    hook.chmod(0o755)
    bench.values |= {"prolog": str(hook), "argv": ["true"]}
    bench.prepare()
    end = bench.end()
    assert failure(end) == ("prolog_failed", f"{hook}: exit code 3; 0 is allowed", False)
    assert end["failure"]["output"] == ["no GPU answers"]


def test_a_worker_beyond_its_memory_is_named(limited: StepBench) -> None:
    limited.values["argv"] = [sys.executable, "-c", "x = bytearray(300 << 20)"]
    limited.prepare()
    limited.go()
    end = limited.end()
    assert (end["exit_code"], failure(end)[0]) == (128 + signal.SIGKILL, "out_of_memory")
    assert not any(Path(folder).exists() for folder in limited.values["cgroups"])


def test_a_worker_beyond_its_processes_is_refused_a_fork(limited: StepBench) -> None:
    limited.start("for i in $(seq 200); do sleep 600 & done; echo unreachable")
    assert "unreachable" not in limited.output() and limited.end()["exit_code"] != 0
    assert "ork" in limited.output()


def test_a_worker_is_born_in_its_groups(limited: StepBench) -> None:
    limited.values["pid_namespace"] = False
    limited.start("setsid sleep 600 & echo up; exec sleep 600")
    limited.line("up")
    until(lambda: cgroups.members(limited.values["cgroups"]) >= set(limited.living()) != set())
    limited.stop(0.0)
    limited.end()
    assert limited.living() == []


@as_root
def test_a_worker_that_does_not_die_is_stuck_until_it_does(bench: StepBench) -> None:
    """A frozen group stands for a process in an uninterruptible wait: SIGKILL has to wait."""
    freezer = Path(f"/sys/fs/cgroup/freezer/berth-test-{os.getpid()}")
    if not freezer.parent.is_dir():
        pytest.skip("no freezer of version 1 here")
    freezer.mkdir()
    bench.values |= {"cgroups": [str(freezer)], "kill_s": 0.2}
    bench.start("echo up; exec sleep 600")
    bench.line("up")
    (freezer / "freezer.state").write_text("FROZEN")
    try:
        bench.stop(0.0)
        until(lambda: bench.phase == "stuck")
        assert bench.living() != []
    finally:
        (freezer / "freezer.state").write_text("THAWED")
    assert bench.end()["exit_code"] == 128 + signal.SIGKILL
    assert bench.living() == [] and not freezer.exists()


def test_a_step_needs_little_memory(bench: StepBench) -> None:
    bench.start("echo up; exec sleep 600")
    bench.line("up")
    status = Path(f"/proc/{bench.state['pid']}/smaps_rollup").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("Rss:"))
    assert int(resident.split()[1]) / 1024 < 14


def pids_of(command: str) -> list[int]:
    wanted = command.encode().replace(b" ", b"\0") + b"\0"
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if (entry / "cmdline").read_bytes().endswith(wanted):
                    pids.append(int(entry.name))
            except OSError:
                continue
    return pids


def alive(pid: int) -> bool:
    return processes.started_ticks(pid) > 0


def test_a_step_loads_none_of_the_large_modules() -> None:
    """There is one step per worker: what it loads is taken that often."""
    large = {"collections", "ctypes", "dataclasses", "enum", "json", "re", "signal", "typing"}
    code = f"import sys; sys.path.insert(0, {str(AGENT)!r})\nimport berth_agent.step.main\n"
    command = [sys.executable, "-I", "-S", "-c", f"{code}print(*sys.modules)"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert not large & set(done.stdout.split())
