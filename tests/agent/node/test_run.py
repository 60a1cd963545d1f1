"""The agent as a process, with real steps and workers, and an executor that speaks the contract."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth_agent.linux import processes
from berth_agent.node.config import Config
from tests.agent.executor_double import ExecutorDouble, Refuse, Vanish
from tests.agent.node_bench import NODE, NodeBench, a_node, launch
from tests.agent.step_bench import until

pytestmark = pytest.mark.process

W = "0/5/0/0"


@pytest.fixture
def double() -> Iterator[ExecutorDouble]:
    double = ExecutorDouble()
    yield double
    double.close()


@pytest.fixture
def node(double: ExecutorDouble) -> Iterator[NodeBench]:
    with a_node(double) as node:
        yield node


def run(double: ExecutorDouble, command: str, name: str = W, **fields: object) -> None:
    """Prepare and start a worker."""
    double.order("prepare", name, launch=launch(command, **fields))
    double.wait_for("ready", name)
    double.order("go", name)


def line(node: NodeBench, start: str, name: str = W) -> None:
    until(lambda: start in node.output(name))


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
        run(double, f"id -u; touch mine; {reports} && ls")
        assert double.wait_for("exited", W).exit_code == 0
        assert node.output(W).splitlines() == [str(default), "mine"]


def test_a_killed_agent_leaves_the_worker_and_adopts_it(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "echo up; read line < fifo; exit 7")
    os.mkfifo(node.state / "work" / "j1.1.0" / "fifo")
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
    run(double, "echo up; read line < fifo; exit 7")
    os.mkfifo(node.state / "work" / "j1.1.0" / "fifo")
    line(node, "up")
    node.kill(signal.SIGTERM)
    (node.state / "work" / "j1.1.0" / "fifo").write_text("end\n")
    until(lambda: node.step(W)["phase"] == "dead")
    node.start()
    assert double.wait_for("exited", W).exit_code == 7


def test_the_socket_of_a_worker_that_ended_without_an_agent_is_removed(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "echo up; read line < fifo")
    os.mkfifo(node.state / "work" / "j1.1.0" / "fifo")
    line(node, "up")
    door = node.run_folder / "telemetry" / "0-5-0-0"
    until(door.exists)
    node.kill()
    (node.state / "work" / "j1.1.0" / "fifo").write_text("end\n")
    until(lambda: node.step(W)["phase"] == "dead")
    assert door.exists()
    node.start()
    until(lambda: not door.exists())


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
        assert not node.living()
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


def test_iterations_and_output_are_streamed(double: ExecutorDouble, node: NodeBench) -> None:
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); from berth_reporter import report\n"
        "for step in range(3): report(step, 0.5); print('step', step, flush=True)\n"
        "input()"
    )
    reporter = str(Path(__file__).parents[3] / "reporter")
    double.order("prepare", W, launch=launch([sys.executable, "-c", script, reporter]))
    double.wait_for("ready", W)
    until((node.run_folder / "telemetry" / "0-5-0-0").exists)
    double.order("go", W)
    double.wait(lambda: sum(len(i.iteration_s) for s in double.streamed for i in s.iterations) == 3)
    double.wait(lambda: len(double.lines(W)) >= 3)
    assert [double.lines(W)[n] for n in range(3)] == ["step 0", "step 1", "step 2"]


def test_a_command_that_is_missing_is_refused_for_good(
    double: ExecutorDouble, node: NodeBench
) -> None:
    double.order("prepare", W, launch=launch(["no-such-python", "train.py"]))
    failure = double.wait_for("refused", W).failure
    assert (failure.reason, failure.permanent) == ("command_missing", True)
    double.order("prepare", "0/6/0/0", launch=launch([], image="torch:2"))
    failure = double.wait_for("refused", "0/6/0/0").failure
    assert (failure.reason, failure.permanent) == ("no_container_runtime", True)


def test_lost_answers_repeat_reports_and_nothing_else(
    double: ExecutorDouble, node: NodeBench
) -> None:
    """Each report gets through although every other answer is lost."""
    answers = {"count": 0}

    def lose(endpoint: str, message: object) -> None:
        if endpoint == "reports":
            answers["count"] += 1
            if answers["count"] % 2:
                raise Vanish

    double.after = lose
    for number in range(4):
        run(double, f"exit {number}", f"0/{10 + number}/0/0", job_id=f"j{number}")
    for number in range(4):
        assert double.wait_for("exited", f"0/{10 + number}/0/0").exit_code == number
    assert len(double.of_kind("ready")) == len(double.of_kind("exited")) == 4


def fail_together(double: ExecutorDouble, node: NodeBench, names: list[str]) -> None:
    """Let workers print bytes of no encoding and fail, while no report is taken."""
    closed = True

    def fault(endpoint: str, message: object) -> None:
        if endpoint == "reports" and closed:
            raise Refuse(503)

    line = "head -c 512 /dev/zero | tr '\\0' '\\377'; echo"
    script = (
        f"until [ -e {node.state}/go ]; do sleep 0.02; done; for i in $(seq 20); do {line}; done"
    )
    for number, name in enumerate(names):
        run(double, f"{script}; exit 1", name, job_id=f"j{number}")
    double.before = fault
    (node.state / "go").touch()
    until(lambda: all(node.step(name).get("phase") == "dead" for name in names))
    closed = False


def test_workers_that_fail_together_after_much_output_are_reported(
    double: ExecutorDouble, node: NodeBench
) -> None:
    names = [f"0/{number}/0/0" for number in range(5, 15)]
    fail_together(double, node, names)
    for name in names:
        assert len(double.wait_for("exited", name).failure.output) == 20


def test_a_report_that_is_too_large_arrives_without_its_output(
    double: ExecutorDouble, node: NodeBench
) -> None:
    double.max_bytes["reports"] = 16 * 1024
    fail_together(double, node, [W])
    failure = double.wait_for("exited", W).failure
    assert (failure.reason, failure.output) == ("exit_code", ())


def test_output_of_many_escapes_is_streamed_of_each_worker_in_turn(
    double: ExecutorDouble, node: NodeBench
) -> None:
    names = [f"0/{number}/0/0" for number in range(5, 11)]
    script = (
        "head -c 90000 /dev/zero | tr '\\0' '\\377' | fold -b -w 500; echo; echo done; sleep 600"
    )
    for number, name in enumerate(names):
        run(double, script, name, job_id=f"j{number}")
    double.wait(lambda: all("done" in double.lines(name).values() for name in names))
    for name in names:
        assert sorted(double.lines(name)) == list(range(len(double.lines(name))))


def test_lines_that_an_executor_refuses_are_left_out_with_a_note(
    double: ExecutorDouble, node: NodeBench
) -> None:
    double.max_bytes["stream"] = 8 * 1024
    script = (
        "head -c 4000 /dev/zero | tr '\\0' '\\377'; echo; until [ -e next ]; do sleep 0.02; done"
    )
    run(double, f"{script}; echo after; sleep 600", W)
    run(double, "echo other; sleep 600", "0/6/0/0", job_id="j2")
    double.wait(lambda: double.lines("0/6/0/0") == {0: "other"})
    double.wait(lambda: double.lines(W).get(0, "").startswith("berth: lines left out here: 1;"))
    (node.state / "work" / "j1.1.0" / "next").touch()
    double.wait(lambda: double.lines(W).get(1) == "after")


def test_a_lapsed_lease_ends_the_workers_and_the_incarnation(double: ExecutorDouble) -> None:
    """Heartbeats are answered too late: at the deadline everything ends, and a new life begins."""
    double.terms["stop_after_s"] = 3.0
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


def test_a_reboot_is_a_new_incarnation(double: ExecutorDouble, node: NodeBench) -> None:
    first = double.joined
    node.kill(signal.SIGTERM)
    life = node.state / "incarnation.json"
    life.write_text(life.read_text().replace('"boot_id": "', '"boot_id": "another-'))
    node.start()
    double.wait(lambda: double.joined != first)
    assert double.joined is not None and first is not None
    assert double.joined.generation == first.generation + 1


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
    double.terms["stop_after_s"] = 3.0
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


def test_a_node_stays_away_until_its_leave_is_cancelled(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "echo up; read line < fifo")
    os.mkfifo(node.state / "work" / "j1.1.0" / "fifo")
    line(node, "up")
    assert node.call("leave").returncode == 0
    until(lambda: bool(node.status()["draining"]))
    double.order("prepare", "0/6/0/0", launch=launch("true"))
    assert double.wait_for("refused", "0/6/0/0").failure.reason == "node_draining"
    (node.state / "work" / "j1.1.0" / "fifo").write_text("end\n")
    double.wait_for("leaving")
    until(lambda: node.status()["state"] == "left")
    assert [report.kind for report in double.reports][-1] == "leaving"
    node.kill(signal.SIGTERM)
    hellos = len(double.hellos)
    node.start()
    assert node.process is not None
    pid = node.process.pid
    until(lambda: (node.status()["pid"], node.status()["state"]) == (pid, "left"))
    assert len(double.hellos) == hellos, "a restart of the unit does not bring the node back"
    assert node.call("leave", "--cancel").returncode == 0
    double.wait(lambda: double.joined is not None and double.joined.generation == 2)


def test_leave_now_stops_the_workers(double: ExecutorDouble, node: NodeBench) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    assert node.call("leave", "--now").returncode == 0
    assert double.wait_for("stopped", W).exit_code == 128 + signal.SIGTERM
    double.wait_for("leaving")


def test_a_prolog_that_fails_drains_the_node(double: ExecutorDouble, tmp_path: Path) -> None:
    prolog = tmp_path / "prolog"
    prolog.write_text("#!/bin/sh\necho no GPU answers; exit 1\n")
    prolog.chmod(0o755)
    with a_node(double, prolog=str(prolog)) as node:
        double.order("prepare", W, launch=launch("true"))
        failure = double.wait_for("refused", W).failure
        assert (failure.reason, failure.output) == ("prolog_failed", ("no GPU answers",))
        double.wait_for("leaving")
        until(lambda: node.status()["state"] == "left")
        assert "prolog_failed" in node.status()["draining"]


def test_hooks_get_the_variables_of_berth_and_none_of_the_job(
    double: ExecutorDouble, tmp_path: Path
) -> None:
    hook = tmp_path / "hook"
    hook.write_text("#!/bin/sh\nenv\n")
    hook.chmod(0o755)
    evil = ("CUDA_INJECTION64_PATH", "BERTH_WORKDIR", "BERTH_X", "BASH_ENV", "LR")
    with a_node(double, prolog=str(hook), epilog=str(hook)) as node:
        run(double, "true", env=dict.fromkeys(evil, "/evil"), gpus=[1])
        double.wait_for("exited", W)
        lines = node.output(W).splitlines()
    assert not [line for line in lines if "evil" in line]
    for expected in ("BERTH_JOB_ID=j1", "CUDA_VISIBLE_DEVICES=1"):
        assert lines.count(expected) == 2
    assert lines.count(f"BERTH_WORKDIR={node.state}/work/j1.1.0") == 2


def test_a_second_agent_in_a_folder_is_refused(double: ExecutorDouble, node: NodeBench) -> None:
    done = node.call("run")
    assert done.returncode == 1
    assert done.stderr == f"berth-agent: {node.state}: in use by another agent\n"


def test_the_status_is_shown(double: ExecutorDouble, node: NodeBench) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    until(lambda: [w["phase"] for w in node.status()["workers"]] == ["running"])
    shown = node.call("status")
    assert shown.returncode == 0
    assert "state       active" in shown.stdout
    assert f"worker      {W} running GPUs 0" in shown.stdout


def test_it_fails_over_to_the_next_executor(double: ExecutorDouble) -> None:
    second = ExecutorDouble()
    try:
        with a_node(double, NODE, second.url):
            second.joined = double.joined

            def refuse(endpoint: str, message: object) -> None:
                raise Refuse(503)

            double.before = refuse
            second.wait(lambda: bool(second.heartbeats))
            assert second.hellos[-1].incarnation == second.joined
            assert not second.of_kind("registration")
    finally:
        second.close()


def test_new_terms_are_reported_when_every_deadline_lies_under_them(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    double.terms |= {"terms_id": "t2", "stop_after_s": None}
    double.order("terms", terms=double.terms)
    assert double.wait_for("terms_applied").terms_id == "t2"
    double.terms |= {"terms_id": "t3", "stop_after_s": 700.0}
    double.order("terms", terms=double.terms)
    double.wait(lambda: [r.terms_id for r in double.of_kind("terms_applied")] == ["t2", "t3"])
    assert (node.folder(W) / "terms").read_text() == "t3"


def test_a_full_disk_is_a_state_and_work_goes_on_when_there_is_room(double: ExecutorDouble) -> None:
    """Orders that cannot be noted are neither carried out nor lost."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    with a_node(double, start=False) as node:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k,mode=711", "tmpfs", node.state], check=True
        )
        try:
            node.join(double.url)
            node.start()
            double.wait(lambda: double.joined is not None)
            filler = node.state / "filler"
            with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)
            double.order("prepare", W, launch=launch("exit 5"))
            until(lambda: "No space" in node.status()["problem"])
            assert node.process is not None and node.process.poll() is None
            filler.unlink()
            double.wait_for("ready", W)
            double.order("go", W)
            assert double.wait_for("exited", W).exit_code == 5
        finally:
            node.close()
            subprocess.run(["umount", "-l", node.state], check=True)


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


def test_the_agent_and_its_step_need_little_memory(double: ExecutorDouble, node: NodeBench) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    double.wait(lambda: double.lines(W) == {0: "up"})
    assert node.process is not None
    assert resident_mib(node.process.pid) < 60
    assert resident_mib(node.step(W)["pid"]) < 14


def resident_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    [kib] = [line.split()[1] for line in text.splitlines() if line.startswith("Rss:")]
    return int(kib) / 1024
