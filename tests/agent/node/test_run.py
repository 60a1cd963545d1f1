"""The agent as a process, with real steps and workers, and an executor that speaks the contract."""

from __future__ import annotations

import os
import signal

import pytest

from berth_agent.linux import processes
from berth_agent.node.config import Config
from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import NodeBench, W, a_node, launch, line, run
from tests.agent.step_bench import until

pytestmark = pytest.mark.process


def test_a_worker_is_prepared_started_and_its_end_reported(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "echo hello; exit 3")
    exited = double.wait_for("exited", W)
    assert exited.exit_code == 3 and exited.failure.reason == "exit_code"
    assert exited.failure.output == ("hello",)
    double.wait(lambda: double.lines(W) == {0: "hello"})
    double.order("forget", W)
    until(lambda: not node.folder(W).exists())
    ended = node.state / "ended" / "0-5-0-0"
    assert ended.exists() and not (ended / "spec.json").exists()


def test_the_last_lines_of_a_worker_follow_its_end(double: ExecutorDouble, node: NodeBench) -> None:
    run(double, "echo first; printf last")
    double.wait_for("exited", W)
    double.order("forget", W)
    double.wait(lambda: double.lines(W) == {0: "first", 1: "last"})


def test_a_worker_that_the_executor_knows_cannot_run_is_refused(
    double: ExecutorDouble, node: NodeBench
) -> None:
    failure = {"reason": "secret_missing", "detail": "db: no such secret", "permanent": True}
    double.order("prepare", W, launch=launch("touch ran", failure=failure))
    refused = double.wait_for("refused", W).failure
    assert (refused.reason, refused.detail, refused.permanent) == (*failure.values(),)
    assert not node.folder(W).exists()


def test_the_registration_tells_what_the_node_has(double: ExecutorDouble, node: NodeBench) -> None:
    registration = double.wait_for("registration")
    assert (registration.gpus, registration.terms_id) == (2, "t1")
    assert registration.labels["berth.address"] == "127.0.0.1"
    assert registration.cpus > 0 and registration.mem_gib > 0
    assert registration.incarnation.generation == 1


def test_the_environment_of_a_worker(double: ExecutorDouble, node: NodeBench) -> None:
    run(double, "env; pwd", env={"LR": "0.1", "RANK": "9"}, gpus=[1], attempt=2)
    double.wait_for("exited", W)
    port = double.wait_for("ready", W).master_port
    text = node.output(W)
    for expected in ("LR=0.1", "RANK=0", "CUDA_VISIBLE_DEVICES=1", "LOCAL_RANK=0"):
        assert expected in text.splitlines()
    assert f"MASTER_PORT={port}" in text and "BERTH_ATTEMPT=2" in text
    assert text.splitlines()[-1] == str(node.state / "work" / "j1.2.0")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives workers a user")
def test_a_worker_of_an_agent_that_is_root_is_not_root(double: ExecutorDouble) -> None:
    default = Config().uid_first
    with a_node(double, uid_first=default) as node:
        reports = 'until [ -S "$BERTH_TELEMETRY" ]; do sleep 0.05; done; [ -w "$BERTH_TELEMETRY" ]'
        run(double, f"id -u; touch mine; {reports} && ls", tenant_number=7)
        assert double.wait_for("exited", W).exit_code == 0
        assert node.output(W).splitlines() == [str(default + 7), "mine"]


def test_a_killed_agent_leaves_the_worker_and_adopts_it(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "mkfifo fifo; echo up; read line < fifo; exit 7")
    line(node, "up")
    before, incarnation = node.step(W), double.joined
    node.kill()
    assert processes.is_alive(before["pid"], before["ticks"])
    hellos = len(double.hellos)
    node.start()
    double.wait(lambda: len(double.hellos) > hellos)
    hello = double.hellos[-1]
    assert hello.incarnation == incarnation and hello.steps[0].phase == "running"
    (node.state / "work" / "j1.1.0" / "fifo").write_text("end\n")
    assert double.wait_for("exited", W).exit_code == 7
    assert len(double.of_kind("registration")) == 1


def test_a_worker_that_ended_without_an_agent_is_reported(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "mkfifo fifo; echo up; read line < fifo; exit 7")
    line(node, "up")
    node.kill(signal.SIGTERM)
    (node.state / "work" / "j1.1.0" / "fifo").write_text("end\n")
    until(lambda: node.step(W)["phase"] == "dead")
    node.start()
    assert double.wait_for("exited", W).exit_code == 7


def test_the_socket_of_a_worker_that_ended_without_an_agent_is_removed(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "mkfifo fifo; echo up; read line < fifo")
    line(node, "up")
    path = node.run_folder / "telemetry" / "0-5-0-0"
    until(path.exists)
    node.kill()
    (node.state / "work" / "j1.1.0" / "fifo").write_text("end\n")
    until(lambda: node.step(W)["phase"] == "dead")
    assert path.exists()
    node.start()
    until(lambda: not path.exists())


def test_sigterm_of_the_agent_stops_no_worker(double: ExecutorDouble, node: NodeBench) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    assert node.kill(signal.SIGTERM) == 0
    state = node.step(W)
    assert state["phase"] == "running" and processes.is_alive(state["pid"], state["ticks"])


def test_sigterm_stops_the_workers_of_an_agent_that_does_not_keep_them(
    double: ExecutorDouble,
) -> None:
    with a_node(double, keep_workers=False) as node:
        run(double, "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done")
        line(node, "up")
        assert node.kill(signal.SIGTERM) == 0
        assert node.step(W)["phase"] == "dead" and node.step(W)["exit_code"] == 3
        until(lambda: not node.living())
        assert double.wait_for("stopped", W).exit_code == 3
        assert double.wait_for("leaving")


def test_a_stop_ends_a_worker_and_repeats_are_harmless(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    order = double.order("stop", W, grace_s=5.0)
    assert double.wait_for("stopped", W).exit_code == 128 + signal.SIGTERM
    double.order("stop", W, grace_s=0.0, incarnation=order["incarnation"])
    double.order("forget", W)
    until(lambda: not node.folder(W).exists())
    double.order("stop", W)
    double.wait(lambda: len(double.of_kind("stopped", W)) == 2)
    assert double.of_kind("stopped", W)[-1].exit_code is None


def test_a_stop_that_races_with_the_start_ends_every_worker(
    double: ExecutorDouble, node: NodeBench
) -> None:
    names = [f"0/{20 + number}/0/0" for number in range(8)]
    for number, name in enumerate(names):
        double.order("prepare", name, launch=launch("exec sleep 600", job_id=f"j{number}"))
    for name in names:
        double.wait_for("ready", name)
        double.order("go", name)
        double.order("stop", name, grace_s=0.0)
    for name in names:
        assert double.wait_for("stopped", name).exit_code in (None, 128 + signal.SIGKILL)
    assert not double.of_kind("exited")
    until(lambda: node.living() == [])


def test_an_agent_that_is_killed_again_and_again_loses_and_doubles_nothing(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "echo up; exec sleep 600", "0/50/0/0", job_id="long")
    line(node, "up", "0/50/0/0")
    long = node.step("0/50/0/0")
    names = [f"0/{60 + number}/0/0" for number in range(6)]
    for number, name in enumerate(names):
        work = launch(f"echo once >> {node.state}/{number}; exit {number}", job_id=f"j{number}")
        double.order("prepare", name, launch=work)
        node.kill()
        node.start()
        double.wait_for("ready", name)
        double.order("go", name)
        node.kill()
        node.start()
        assert double.wait_for("exited", name).exit_code == number
        assert (node.state / str(number)).read_text() == "once\n"
    assert node.step("0/50/0/0") == long and processes.is_alive(long["pid"], long["ticks"])
    assert len(double.of_kind("registration")) == 1


def test_orders_of_another_incarnation_and_old_ones_are_ignored(
    double: ExecutorDouble, node: NodeBench
) -> None:
    wanted = launch("touch started")
    double.order("prepare", "0/6/0/0", launch=wanted, incarnation="f" * 32)
    double.order("go", "0/6/0/0", incarnation="f" * 32)
    position = {"seq": 0, "index": 0}
    with double.changed:
        old = {"kind": "prepare", "position": position, "allocation_id": "0/0/0/0"}
        assert double.joined is not None
        double.confirmations.append({**old, "incarnation": double.joined.uuid, "launch": wanted})
        double.changed.notify_all()
    assert double.wait_for("stopped", "0/0/0/0").exit_code is None
    run(double, "exit 0")
    double.wait_for("exited", W)
    assert not node.folder("0/6/0/0").exists() and not node.folder("0/0/0/0").exists()


def test_confirm_is_answered_with_the_state(double: ExecutorDouble, node: NodeBench) -> None:
    double.order("prepare", W, launch=launch("true"))
    first = double.wait_for("ready", W)
    # One that waits is not repeated.
    until(lambda: node.status()["reports_waiting"] == 0)
    with double.changed:
        assert double.joined is not None
        common = {"position": {"seq": 0, "index": 0}, "incarnation": double.joined.uuid}
        double.confirmations += [
            {"kind": "confirm", "allocation_id": W, **common},
            {"kind": "confirm", "allocation_id": "0/9/9/9", **common},
        ]
        double.changed.notify_all()
    double.wait(lambda: len(double.of_kind("ready", W)) == 2)
    assert double.of_kind("ready", W)[1] == first
    assert double.wait_for("stopped", "0/9/9/9").exit_code is None
