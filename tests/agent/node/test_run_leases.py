"""An agent whose lease, incarnation, identity or step ends, and how it begins anew."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from berth_agent.linux import files, processes
from berth_agent.node.credentials.identity import read_identity, write_identity
from tests.agent.executor_double import ExecutorDouble, Refuse
from tests.agent.node_bench import NODE, NodeBench, W, a_deaf_process, a_node, launch, line, run
from tests.agent.step_bench import a_time_namespace, clocks_that_jump, until
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process
SHORT_S = 8.0
"""A lease whose end a test awaits, and within which a busy machine answers a heartbeat."""


def test_a_lapsed_lease_ends_the_workers_and_the_incarnation(double: ExecutorDouble) -> None:
    """Heartbeats are answered too late: at the deadline everything ends, and a new life begins."""
    double.terms["stop_after_s"] = SHORT_S
    with a_node(double) as node:
        first = double.joined
        assert first is not None
        run(double, "trap '' TERM; echo up; while :; do sleep 0.02; done", grace_s=1.0)
        line(node, "up")

        def cut(endpoint: str, message: object) -> None:
            raise Refuse(503)

        double.before = cut
        until(lambda: node.step(W)["phase"] == "dead")
        until(lambda: node.status()["state"] == "clearing")
        assert node.step(W)["failure"]["reason"] == "fenced"
        double.before = lambda endpoint, message: None
        double.wait(lambda: double.joined is not None and double.joined.uuid != first.uuid)
        assert double.joined is not None and double.joined.generation == first.generation + 1
        exited = double.wait_for("exited", W)
        assert exited.failure.reason == "fenced" and exited.exit_code == 128 + signal.SIGKILL
        lapsed = [hello for hello in double.hellos if hello.lapsed]
        assert lapsed and all(hello.incarnation == first for hello in lapsed)


def test_a_fence_ends_everything_at_once(double: ExecutorDouble, node: NodeBench) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    first = double.joined
    double.order("fence")
    double.wait(lambda: double.joined is not None and double.joined != first)
    assert double.wait_for("exited", W).failure.reason == "fenced"
    until(lambda: node.living() == [])


def test_the_gpu_of_a_worker_that_does_not_die_is_not_offered(double: ExecutorDouble) -> None:
    """[R20] An agent finds a worker of an older incarnation that outlived its kill."""
    with a_node(double, start=False) as node, a_deaf_process() as step:
        folder = node.folder("0/1/0/0")
        folder.mkdir(parents=True)
        order = {
            "kind": "prepare",
            "position": {"seq": 1, "index": 0},
            "incarnation": "f" * 32,
            "allocation_id": "0/1/0/0",
            "launch": launch("true", gpus=[1]),
        }
        noted = {"order": order, "token": f"{NODE}:stuck", "master_port": None}
        ticks = processes.started_ticks(step.pid)
        state = {"phase": "stuck", "pid": step.pid, "ticks": ticks, "started": True}
        files.write_json(str(folder / "order.json"), noted)
        files.write_json(str(folder / "state.json"), state)
        node.start()
        assert double.wait_for("registration").unusable_gpus == (1,)
        run(double, "exit 4")
        assert double.wait_for("exited", W).exit_code == 4
        assert step.poll() is None


def test_a_reboot_is_a_new_incarnation(double: ExecutorDouble, node: NodeBench) -> None:
    first = double.joined
    node.kill(signal.SIGTERM)
    life = node.state / "incarnation.json"
    life.write_text(life.read_text().replace('"boot_id": "', '"boot_id": "another-'))
    node.start()
    double.wait(lambda: double.joined != first)
    assert double.joined is not None and first is not None
    assert double.joined.generation == first.generation + 1


@pytest.mark.parametrize(("clock", "generation"), [("boottime", 2), ("monotonic", 1)])
def test_a_machine_that_was_suspended_beyond_its_lease_begins_anew(
    double: ExecutorDouble, node: NodeBench, clock: str, generation: int
) -> None:
    """[R17] A time namespace has the clock of a machine that was suspended for a day."""
    within = a_time_namespace(clock)
    node.kill()
    hellos = len(double.hellos)
    node.within = within
    node.start()
    double.wait(lambda: len(double.hellos) > hellos)
    assert double.hellos[hellos].lapsed is (generation == 2)
    until(lambda: node.status().get("state") == "active")
    assert node.status()["generation"] == generation


def test_a_running_agent_begins_anew_when_its_machine_wakes_beyond_the_lease(
    double: ExecutorDouble, tmp_path: Path
) -> None:
    """[R17] The clocks of the agent jump while its worker runs."""
    woken = tmp_path / "woken"
    (tmp_path / "sitecustomize.py").write_text(clocks_that_jump(woken))
    with a_node(double, start=False) as node:
        node.code = Path(f"{tmp_path}{os.pathsep}{node.code}")
        node.start()
        double.wait(lambda: double.joined is not None)
        run(double, "echo up; exec sleep 600")
        line(node, "up")
        step = node.step(W)
        woken.touch()
        double.wait(lambda: double.joined is not None and double.joined.generation == 2)
        assert double.wait_for("exited", W).failure.reason == "fenced"
        until(lambda: not processes.is_alive(step["pid"], step["ticks"]))


def test_answers_after_the_lapse_extend_and_start_nothing(double: ExecutorDouble) -> None:
    """[R2] The network held acknowledged heartbeats and an order to go, and gives them back."""
    other, passes = "0/6/0/0", threading.Event()
    double.terms |= {"stop_after_s": SHORT_S, "request_timeout_s": 60.0}
    with a_node(double) as node:
        first = double.joined
        run(double, "echo up; exec sleep 600", job_id="j0")
        line(node, "up")
        double.order("prepare", other, launch=launch("touch ran", gpus=[1]))
        double.wait_for("ready", other)

        def hold(endpoint: str, message: object) -> None:
            if endpoint in ("heartbeat", "orders"):
                passes.wait(PATIENCE_S)

        double.after = hold
        double.order("go", other)
        until(lambda: {node.step(name)["phase"] for name in (W, other)} == {"dead"})
        passes.set()
        double.wait(lambda: double.joined is not None and double.joined != first)
        assert double.joined is not None and double.joined.generation == 2
        assert double.wait_for("exited", W).failure.reason == "fenced"
        assert not node.folder(other).exists() and not list(node.state.glob("work/*/ran"))


def test_a_lost_state_folder_takes_the_next_generation(double: ExecutorDouble) -> None:
    with a_node(double) as node:
        run(double, "echo up; exec sleep 600")
        line(node, "up")
        step = node.step(W)
        node.kill()
        for name in ("incarnation.json", "applied", "outbox"):
            (node.state / name).unlink()
        for path in sorted(node.folder(W).iterdir()):
            path.unlink()
        node.folder(W).rmdir()
        node.start()
        double.wait(lambda: double.joined is not None and double.joined.generation == 2)
        assert not processes.is_alive(step["pid"], step["ticks"])
        assert double.hellos[-1].steps == ()


def test_a_node_works_on_when_its_ledger_was_restored_from_a_backup(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    first = double.joined
    double.restore(1)
    double.wait(lambda: double.joined != first)
    until(lambda: node.living() == [])
    run(double, "exit 4", "0/3/0/0")
    assert double.wait_for("exited", "0/3/0/0").exit_code == 4
    assert len(double.of_kind("registration")) == 2


def test_a_node_notices_a_restored_ledger_that_has_grown_since(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    first = double.joined
    node.kill()
    double.restore(1)
    for seq in range(4):
        double.order("prepare", f"0/{seq}/0/0", incarnation="f" * 32, launch=launch("true"))
    node.start()
    double.wait(lambda: double.joined != first)
    until(lambda: node.living() == [])


def test_a_node_that_joined_another_pool_works_there(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "exit 0")
    double.wait_for("exited", W)
    other = ExecutorDouble()
    try:
        node.kill(signal.SIGTERM)
        node.join(other.url)
        node.start()
        other.wait(lambda: other.joined is not None)
        # Another pool is another lane; reports that the old one did not acknowledge come here too.
        run(other, "exit 4", "1/5/0/0")
        assert other.wait_for("exited", "1/5/0/0").exit_code == 4
    finally:
        other.close()


def test_a_node_presents_its_next_secret_after_a_renewal_without_answer(
    double: ExecutorDouble,
) -> None:
    with a_node(double, start=False) as node:
        identity = read_identity(str(node.state))
        write_identity(str(node.state), replace(identity, next_secret="n" * 64))
        double.credential = f"{NODE}.{'n' * 64}"
        node.start()
        double.wait(lambda: double.joined is not None)
        assert len(double.of_kind("registration")) == 1


def test_a_killed_step_is_reported_and_its_worker_gone(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "setsid sh -c 'echo escaped; exec sleep 600' & echo up; exec sleep 600")
    line(node, "escaped")
    os.kill(node.step(W)["pid"], signal.SIGKILL)
    exited = double.wait_for("exited", W)
    assert (exited.exit_code, exited.failure.reason) == (128 + signal.SIGKILL, "step_lost")
    assert node.living() == []


def test_without_namespaces_the_agent_sweeps_what_escaped(double: ExecutorDouble) -> None:
    with a_node(double, pid_namespaces=False) as node:
        assert double.wait_for("registration").fencing == "advice"
        run(double, "setsid sh -c 'echo escaped; exec sleep 600' & echo up; exec sleep 600")
        line(node, "escaped")
        os.kill(node.step(W)["pid"], signal.SIGKILL)
        assert double.wait_for("exited", W).failure.reason == "step_lost"
        assert node.living() == []


def test_a_frozen_step_is_killed_by_the_agent(double: ExecutorDouble) -> None:
    """The second enforcer: some seconds after a stop's grace that the step did not see."""
    with a_node(double) as node:
        run(double, "echo up; exec sleep 600")
        line(node, "up")
        os.kill(node.step(W)["pid"], signal.SIGSTOP)
        double.order("stop", W, grace_s=0.0)
        double.wait_for("stopped", W)
        assert node.living() == []


def test_a_frozen_step_does_not_outlive_the_lease(double: ExecutorDouble) -> None:
    """The step cannot act at its deadline; the agent does some seconds later."""
    double.terms["stop_after_s"] = SHORT_S
    with a_node(double) as node:
        run(double, "echo up; exec sleep 600")
        line(node, "up")

        def cut(endpoint: str, message: object) -> None:
            raise Refuse(503)

        os.kill(node.step(W)["pid"], signal.SIGSTOP)
        double.before = cut
        until(lambda: node.step(W)["phase"] == "dead")
        assert node.living() == []
        double.before = lambda endpoint, message: None
        assert double.wait_for("exited", W).failure.reason == "fenced"


@pytest.mark.parametrize("damage", ["emptied", "removed"])
def test_a_worker_without_its_order_ends_before_it_is_reported(
    double: ExecutorDouble, node: NodeBench, damage: str
) -> None:
    """[R8] A disk that shuts down loses a file that was not flushed, and the kernel runs on."""
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    first, step = double.joined, node.step(W)
    node.kill()
    order = node.folder(W) / "order.json"
    order.unlink()
    if damage == "emptied":
        order.touch()
    lived: list[bool] = []

    def look(endpoint: str, message: object) -> None:
        lived.append(processes.is_alive(step["pid"], step["ticks"]) or node.living() != [])

    double.before = look
    node.start()
    double.order("confirm", W)
    double.wait_for("stopped", W)
    assert lived and not any(lived)
    assert double.joined == first and not node.folder(W).exists()
    run(double, "exit 4", "0/6/0/0")
    assert double.wait_for("exited", "0/6/0/0").exit_code == 4
