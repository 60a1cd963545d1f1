"""Workers as real processes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from services.executor.core.effects import Prepared, PrepareFailed, WorkerEnded
from services.executor.process.group import status
from tests.services.executor.facts import a_spec, worker_spec
from tests.services.executor.process.conftest import Bench

pytestmark = pytest.mark.process

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a worker its own uid")


def lives(pid: int) -> bool:
    process = status(pid)
    return process is not None and process.state not in "ZX"


async def test_nothing_runs_before_the_start(bench: Bench) -> None:
    worker = bench.worker_of("touch ran")
    bench.backend.prepare(worker)
    assert bench.outcomes == [Prepared("0/1/0/0")]
    await asyncio.sleep(0.05)
    assert not (bench.home(worker) / "ran").exists()
    bench.backend.start("0/1/0/0")
    await bench.end()
    assert (bench.home(worker) / "ran").exists()


@pytest.mark.parametrize("code", [0, 1, 42, 255])
async def test_the_exit_code_is_the_programs(bench: Bench, code: int) -> None:
    bench.start(f"exit {code}")
    assert (await bench.end()).exit_code == code


async def test_the_run_time_is_reported(bench: Bench) -> None:
    """With a second to spare: on a busy machine the clock starts after the program."""
    bench.start("sleep 1")
    assert (await bench.end()).ran_ms >= 200


async def test_a_program_that_a_signal_ends_exits_with_128_and_its_number(bench: Bench) -> None:
    bench.start("kill -SEGV $$")
    assert (await bench.end()).exit_code == 128 + signal.SIGSEGV


async def test_a_program_that_handles_sigterm_ends_within_its_grace(bench: Bench) -> None:
    worker = bench.start("trap 'echo saved; exit 9' TERM; echo up; while :; do sleep 0.02; done")
    await bench.line(worker, "up")
    bench.backend.stop("0/1/0/0", 20.0)
    assert (await bench.end()).exit_code == 9
    assert "saved" in bench.output(worker)


async def test_a_program_that_ignores_sigterm_is_killed_after_its_grace(bench: Bench) -> None:
    worker = bench.start("trap 'echo caught' TERM; echo up; while :; do sleep 0.02; done")
    await bench.line(worker, "up")
    bench.backend.stop("0/1/0/0", 0.2)
    end = await bench.end()
    assert end.exit_code == 128 + signal.SIGKILL
    assert "caught" in bench.output(worker) and end.ran_ms >= 200


async def test_grandchildren_are_killed_with_their_group(bench: Bench) -> None:
    worker = bench.start("(trap '' TERM; sleep 600) & echo child $!; sleep 600")
    child = int((await bench.line(worker, "child")).split()[1])
    bench.backend.stop("0/1/0/0", 0.1)
    await bench.end()
    assert not lives(child)


async def test_a_grandchild_in_a_session_of_its_own_is_killed_too(bench: Bench) -> None:
    worker = bench.start("setsid sh -c 'echo child $$; exec sleep 600' & sleep 0.3")
    child = int((await bench.line(worker, "child")).split()[1])
    assert (await bench.end()).exit_code == 0
    assert not lives(child)


async def test_what_a_finished_program_leaves_behind_is_killed(bench: Bench) -> None:
    worker = bench.start("sleep 600 & echo child $!")
    await bench.end()
    assert not lives(int((await bench.line(worker, "child")).split()[1]))


async def test_no_zombie_stays(bench: Bench) -> None:
    worker = bench.start("echo me $$")
    await bench.end()
    assert status(int((await bench.line(worker, "me")).split()[1])) is None


async def test_the_environment_is_built_never_inherited(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "executor's own")
    worker = bench.start(
        "/usr/bin/env",
        "0/7/1/3",
        env={"LR": "0.1", "BERTH_RANK": "99", "PATH": "/job/bin"},
        rank=3,
        local_rank=1,
        world_size=4,
        gpus=(2, 5),
        array_index=17,
        attempt=2,
        master_address="10.1.2.3",
    )
    await bench.end("0/7/1/3")
    seen = dict(line.split("=", 1) for line in bench.output(worker).splitlines())
    wanted = {
        "CUDA_VISIBLE_DEVICES": "2,5",
        "BERTH_RANK": "3",
        "RANK": "3",
        "BERTH_LOCAL_RANK": "1",
        "BERTH_WORLD_SIZE": "4",
        "WORLD_SIZE": "4",
        "MASTER_ADDR": "10.1.2.3",
        "BERTH_JOB_ID": worker.job_id,
        "BERTH_ATTEMPT": "2",
        "BERTH_ARRAY_INDEX": "17",
        "LR": "0.1",
        "PATH": "/job/bin",
        "HOME": str(bench.home(worker)),
    }
    assert {name: seen.get(name) for name in wanted} == wanted
    assert "CANARY" not in seen and "BERTH_KAFKA" not in seen
    assert 20000 <= int(seen["MASTER_PORT"]) < 30000


async def test_all_workers_of_a_gang_get_the_same_port(bench: Bench) -> None:
    first = bench.start("echo $MASTER_PORT", "0/7/1/0")
    second = bench.start("echo $MASTER_PORT", "0/7/1/1", rank=1)
    await bench.end("0/7/1/0")
    await bench.end("0/7/1/1")
    assert bench.output(first) == bench.output(second)


async def test_no_descriptor_is_inherited(bench: Bench, tmp_path: Path) -> None:
    with (tmp_path / "open").open("wb") as file:
        os.set_inheritable(file.fileno(), True)
        worker = bench.start("ls /proc/self/fd; readlink /proc/self/fd/0")
        await bench.end()
    *descriptors, stdin = bench.output(worker).split()
    # 3 is the folder that `ls` itself reads.
    assert set(descriptors) == {"0", "1", "2", "3"} and stdin == "/dev/null"


async def test_output_is_whole_in_its_file_and_streamed(bench: Bench) -> None:
    worker = bench.start(r"echo out; echo err >&2; printf 'caf\351\n'; sleep 0.2; printf last")
    await bench.line(worker, "err")
    bench.backend.print_new()
    await bench.end()
    lines = [line for record in bench.printed for line in record.lines]
    assert lines == ["out", "err", "caf\ufffd", "last"]
    assert [r.first_line for r in bench.printed] == [0, 3]
    assert (bench.home(worker) / "output.log").read_bytes() == b"out\nerr\ncaf\xe9\nlast"


async def test_a_worker_cannot_have_another_file_read_in_place_of_its_output(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "private").write_text("private\n")
    worker = bench.start(
        f"echo mine; rm output.log; ln -s {tmp_path}/private output.log; sleep 0.1"
    )
    await bench.end()
    assert [line for record in bench.printed for line in record.lines] == ["mine"]
    assert (bench.home(worker) / "output.log").is_symlink()


@pytest.mark.parametrize(
    ("command", "reason"),
    [((), "no_command"), (("no-such-program",), "command_missing"), (("./x",), "command_missing")],
)
async def test_what_cannot_be_run_is_refused_when_it_is_prepared(
    bench: Bench, command: tuple[str, ...], reason: str
) -> None:
    spec = a_spec().model_copy(update={"command": command})
    bench.backend.prepare(worker_spec("a", spec))
    (refused,) = bench.outcomes
    assert isinstance(refused, PrepareFailed) and refused.reason.startswith(reason)


async def test_a_program_that_cannot_be_started_exits_as_in_a_shell(
    bench: Bench, tmp_path: Path
) -> None:
    program = tmp_path / "broken"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o755)
    spec = a_spec().model_copy(update={"command": (str(program),)})
    bench.backend.prepare(worker_spec("a", spec))
    bench.backend.start("a")
    assert await bench.end("a") == WorkerEnded("a", 126, 0)


async def test_secrets_are_files_of_the_jobs_own_tenant(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    for tenant in ("ada", "bob"):
        (tmp_path / tenant).mkdir()
        (tmp_path / tenant / f"{tenant}-key").write_text("s3cr3t\n")
    bench = make_bench(secrets=tmp_path)
    worker = bench.start("echo got $WANDB_KEY", env={"WANDB_KEY": "secret://ada-key"})
    await bench.end()
    assert bench.output(worker) == "got s3cr3t\n"
    for name in ("bob-key", "../bob/bob-key", "missing", ""):
        bench.backend.prepare(bench.worker_of("true", name, env={"K": f"secret://{name}"}))
        refused = bench.outcomes[-1]
        assert isinstance(refused, PrepareFailed) and refused.reason.startswith("secret_missing")


@as_root
async def test_each_worker_has_a_uid_of_its_own_and_leaves_nothing_to_the_next(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(uid_first=73_000, uid_count=2)
    first = bench.start("id -u; id -G; umask; echo secret > note; sleep 0.3", "a")
    second = bench.start("id -u", "b")
    await bench.end("a")
    await bench.end("b")
    assert bench.output(first).split() == ["73000", "73000", "0077"]
    assert bench.output(second).split() == ["73001"]
    third = bench.start(f"id -u; cat ../{bench.home(first).name}/note", "c")
    assert (await bench.end("c")).exit_code != 0
    assert bench.output(third).split()[0] == "73000"


@as_root
async def test_without_a_free_uid_a_worker_is_refused(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(uid_first=73_000, uid_count=1)
    bench.start("sleep 5", "a")
    bench.backend.prepare(bench.worker_of("true", "b"))
    refused = bench.outcomes[-1]
    assert isinstance(refused, PrepareFailed) and refused.reason.startswith("no_uid")


async def test_a_stop_of_a_worker_that_never_ran_or_is_unknown_reports_an_end_without_code(
    bench: Bench,
) -> None:
    worker = bench.worker_of("true")
    bench.backend.prepare(worker)
    bench.backend.stop("0/1/0/0", 5.0)
    bench.backend.stop("unknown", 5.0)
    assert bench.outcomes[1:] == [WorkerEnded("0/1/0/0", None), WorkerEnded("unknown", None)]
    assert not bench.home(worker).exists()


async def test_closing_leaves_nothing_running(bench: Bench) -> None:
    worker = bench.start("trap '' TERM; echo me $$; while :; do sleep 0.02; done")
    leader = int((await bench.line(worker, "me")).split()[1])
    await bench.backend.close()
    assert not lives(leader)
