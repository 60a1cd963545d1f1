"""An agent on a full disk, or with a hostile executor, and the memory that it needs."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import NodeBench, W, a_node, launch, line, run
from tests.agent.small_disk import a_small_disk, fill
from tests.agent.step_bench import until

pytestmark = pytest.mark.process

MIB = 2**20
HOUR_S = 3600
SHIFTED_CLOCK = """
import time
from pathlib import Path
wall_ns = time.time_ns
def shifted_ns():
    Path({seen!r}).touch()
    return wall_ns() + {off_s} * 1_000_000_000
time.time_ns = shifted_ns
time.time = lambda: shifted_ns() / 1e9
"""
"""Runs before the agent, whose wall clock is wrong by so many seconds; a file shows that it did."""


def test_a_full_disk_is_a_state_and_work_goes_on_when_there_is_room(double: ExecutorDouble) -> None:
    """Orders that cannot be noted are neither carried out nor lost."""
    with a_node(double, start=False) as node:
        node.settings["reserve_mib"] = 0.0
        with a_small_disk(node.state, "256k"), closing(node):
            node.join(double.url)
            node.start()
            double.wait(lambda: double.joined is not None)
            filler = node.state / "filler"
            fill(filler)
            double.order("prepare", W, launch=launch("exit 5"))
            until(lambda: "No space" in node.status()["problem"])
            assert node.process is not None and node.process.poll() is None
            filler.unlink()
            double.wait_for("ready", W)
            double.order("go", W)
            assert double.wait_for("exited", W).exit_code == 5


def test_on_a_full_disk_stops_are_obeyed_and_ends_reported_from_the_reserve(
    double: ExecutorDouble,
) -> None:
    """Another program has filled the disk."""
    other = "0/6/0/0"
    with a_node(double, start=False) as node:
        node.settings["reserve_mib"] = 1.0
        with a_small_disk(node.state, "4m"), closing(node):
            node.join(double.url)
            node.start()
            double.wait(lambda: double.joined is not None)
            run(double, "echo up; exec sleep 600")
            line(node, "up")
            assert (node.state / "reserve").stat().st_size == MIB
            filler = node.state / "filler"
            fill(filler)
            double.order("stop", W)
            double.wait_for("stopped", W)
            assert (node.state / "reserve").stat().st_size < MIB
            double.order("prepare", other, launch=launch("exit 5"))
            assert double.wait_for("refused", other).failure.reason == "disk_full"
            until(lambda: "the agent's reserve included" in node.status()["problem"])
            filler.unlink()
            until(lambda: node.status()["problem"] == "")
            assert "the disk takes writes again" in node.log.read_text()
            again = "0/9/0/0"
            run(double, "exit 5", again)
            assert double.wait_for("exited", again).exit_code == 5


def test_a_node_that_starts_without_space_for_its_reserve_refuses_work_until_there_is(
    double: ExecutorDouble,
) -> None:
    """Work that it took could end without a note of it, and would run twice."""
    with a_node(double, start=False) as node:
        node.settings["reserve_mib"] = 1.0
        with a_small_disk(node.state, "4m"), closing(node):
            node.join(double.url)
            filler = node.state / "filler"
            filler.write_bytes(bytes(3 * MIB))
            node.start()
            double.wait(lambda: double.joined is not None)
            double.order("prepare", W, launch=launch("exit 5"))
            failure = double.wait_for("refused", W).failure
            assert failure.reason == "disk_full" and str(node.state) in failure.detail
            assert not (node.state / "reserve").exists()
            assert node.status()["problem"].endswith(failure.detail)
            assert failure.detail in node.log.read_text()
            filler.unlink()
            until(lambda: node.status()["problem"] == "")
            assert (node.state / "reserve").stat().st_size == MIB
            assert "the disk takes writes again" in node.log.read_text()
            again = "0/9/0/0"
            run(double, "exit 5", again)
            assert double.wait_for("exited", again).exit_code == 5


def test_a_job_that_fills_the_disk_ends_and_what_it_wrote_goes_at_once(
    double: ExecutorDouble,
) -> None:
    """The worker beside it goes on."""
    other = "0/6/0/0"
    with a_node(double, start=False) as node:
        node.settings["disk_gib"] = 1 / 16
        node.join(double.url)
        node.start()
        double.wait(lambda: double.joined is not None)
        assert double.wait_for("registration").labels["berth.disk"] == "0.0625 GiB"
        run(double, "echo up; exec sleep 600", other, job_id="j2")
        line(node, "up", other)
        script = "head -c 80M /dev/zero > large; echo full; exec sleep 600"
        run(double, script, W, grace_s=60.0)
        line(node, "full")
        large = next(node.state.glob("work/*/large"))
        exited = double.wait_for("exited", W)
        assert exited.failure.reason == "disk_limit"
        assert "0.0625 (disk_gib) are allowed" in exited.failure.detail
        until(lambda: not large.parent.exists())
        assert node.step(other)


def test_a_job_that_deletes_the_file_that_it_fills_ends_too(double: ExecutorDouble) -> None:
    """No name of it is left to be measured."""
    with a_node(double, start=False) as node:
        node.settings["disk_gib"] = 1 / 16
        node.join(double.url)
        node.start()
        double.wait(lambda: double.joined is not None)
        script = "exec 3> large; rm large; head -c 80M /dev/zero >&3; echo full; exec sleep 600"
        run(double, script, W, grace_s=60.0)
        failure = double.wait_for("exited", W).failure
        assert failure.reason == "disk_limit"
        assert "in files that it has deleted and keeps open" in failure.detail


def test_a_hostile_executor_ends_no_worker_and_no_agent(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    before = node.step(W)
    good = dict(double.terms)
    bad_answers = [
        {**good, "stop_after_s": 0.0},
        {**good, "stop_after_s": "x"},
        {**good, "heartbeat_s": -1},
        {},
    ]
    for terms in bad_answers:
        hellos = len(double.hellos)
        with double.changed:
            double.terms = terms
            double.drop_session()
        double.wait(lambda seen=hellos: len(double.hellos) > seen)  # type: ignore[misc]
        until(lambda: node.status()["problem"] != "")
    with double.changed:
        double.terms = good
    until(lambda: node.status()["problem"] == "")
    assert node.step(W) == before and node.process is not None and node.process.poll() is None
    assert "Traceback" not in node.log.read_text()


@pytest.mark.parametrize("off_s", [HOUR_S, -HOUR_S])
def test_a_wall_clock_that_is_an_hour_off_ends_no_worker(
    double: ExecutorDouble, tmp_path: Path, off_s: int
) -> None:
    """[R22] The lease counts on the boot clock alone, and an identity is kept for days."""
    seen = tmp_path / "seen"
    customized = SHIFTED_CLOCK.format(off_s=off_s, seen=str(seen))
    (tmp_path / "sitecustomize.py").write_text(customized)
    with a_node(double, start=False) as node:
        node.code = Path(f"{tmp_path}:{node.code}")
        node.start()
        double.wait(lambda: double.joined is not None)
        os.mkfifo(tmp_path / "stop")
        run(double, f"echo up; read line < {tmp_path}/stop; exit 7")
        line(node, "up")
        before, beats = node.step(W), len(double.heartbeats)
        double.wait(lambda: len(double.heartbeats) > beats + 3)
        assert node.step(W) == before and node.status()["state"] == "active"
        (tmp_path / "stop").write_text("now\n")
        assert double.wait_for("exited", W).exit_code == 7
        assert seen.exists()
        node.close()


def test_the_agent_and_its_step_need_little_memory(double: ExecutorDouble, node: NodeBench) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    double.wait(lambda: double.lines(W) == {0: "up"})
    assert node.process is not None
    assert resident_mib(node.process.pid) < 60
    step = node.step(W)
    # What only its start needed is given back a second later.
    double.wait(lambda: resident_mib(step["pid"]) + resident_mib(step["init_pid"]) < 12)


def resident_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    [kib] = [line.split()[1] for line in text.splitlines() if line.startswith("Rss:")]
    return int(kib) / 1024
