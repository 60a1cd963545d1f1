"""An agent in the hands of its operators: leave, hooks, status, other executors, new terms."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.agent.executor_double import ExecutorDouble, Refuse
from tests.agent.node_bench import INSTALLATION, NODE, NodeBench, W, a_node, launch, line, run
from tests.agent.step_bench import until

pytestmark = pytest.mark.process


def test_a_node_stays_away_until_its_leave_is_cancelled(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "mkfifo fifo; echo up; read line < fifo")
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
    assert "leave --cancel" in node.status()["problem"]
    double.credential = "another"
    refused = node.call("leave", "--cancel")
    assert refused.returncode == 1 and "join again with a new token" in refused.stderr
    double.credential = None
    assert node.call("leave", "--cancel").returncode == 0
    double.wait(lambda: double.joined is not None and double.joined.generation == 2)
    log = node.log.read_text()
    assert f"session with {double.url}" in log and "the node has left" in log
    until(lambda: "the node is active: generation 2" in node.log.read_text())


def test_a_leave_of_a_dead_agent_is_cancelled_only_where_the_node_may_still_come_back(
    double: ExecutorDouble, node: NodeBench
) -> None:
    until(lambda: node.status()["state"] == "active")
    node.kill(signal.SIGKILL)
    double.credential = "another"
    refused = node.call("leave", "--cancel")
    assert refused.returncode == 1
    assert "the agent is not running, and its credential is refused" in refused.stderr
    double.credential = None
    done = node.call("leave", "--cancel")
    assert done.stdout.startswith("The node takes work again when its agent is started")


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


def test_a_copy_of_the_disk_is_refused_on_the_machine_of_the_node(
    double: ExecutorDouble, node: NodeBench, tmp_path: Path
) -> None:
    double.wait_for("registration")
    (tmp_path / "copy").mkdir(mode=0o755)
    copy = NodeBench(tmp_path / "copy", node.node_id, double.url)
    done = copy.call("run")
    assert done.returncode == 1
    assert f"works with the identity of node {node.node_id}" in done.stderr
    assert "`berth nodes token --pool POOL`" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    node.kill()
    copy.start()
    try:
        until(lambda: len(double.hellos) > 1)
        assert double.hellos[-1].process != double.hellos[0].process
    finally:
        copy.kill()


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
            second.follow(double)

            def refuse(endpoint: str, message: object) -> None:
                raise Refuse(503)

            double.before = refuse
            second.wait(lambda: bool(second.heartbeats))
            assert second.hellos[-1].incarnation == second.joined
            assert not second.of_kind("registration")
    finally:
        second.close()


def test_it_moves_to_the_executors_that_its_executor_names(double: ExecutorDouble) -> None:
    second = ExecutorDouble()
    try:
        double.executors = (second.url,)
        with a_node(double):
            second.follow(double)

            def refuse(endpoint: str, message: object) -> None:
                raise Refuse(503)

            double.before = refuse
            second.wait(lambda: bool(second.heartbeats))
            assert second.hellos[-1].incarnation == second.joined
    finally:
        second.close()


def test_wrong_new_addresses_do_not_part_it_from_its_executor(double: ExecutorDouble) -> None:
    double.executors = ("http://127.0.0.1:9",)
    with a_node(double):
        hellos = len(double.hellos)
        with double.changed:
            double.drop_session()
        double.wait(lambda: len(double.hellos) > hellos)


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


def test_terms_may_change_before_the_registration_arrives(double: ExecutorDouble) -> None:
    """The ledger begins with the terms that the registration names, and learns the present ones."""

    def refuse(endpoint: str, message: object) -> None:
        if endpoint == "reports":
            raise Refuse(503)

    double.before = refuse
    with a_node(double, start=False) as node:
        node.start()
        double.wait(lambda: bool(double.heartbeats))
        with double.changed:
            hellos = len(double.hellos)
            double.terms |= {"terms_id": "t2", "stop_after_s": 700.0}
            double.drop_session()
        double.wait(lambda: len(double.hellos) > hellos)
        double.before = lambda endpoint, message: None
        assert double.wait_for("registration").terms_id == "t1"
        with double.changed:
            double.drop_session()
        assert double.wait_for("terms_applied").terms_id == "t2"


def test_a_node_leaves_alone_what_another_installation_runs_under_its_name(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    living = set(node.living())
    other = ExecutorDouble()
    try:
        with a_node(other, node.node_id, start=False) as second:
            second.installation = "other"
            second.join(other.url)
            second.start()
            other.wait(lambda: other.joined is not None)
            run(other, "echo up; exec sleep 600")
            line(second, "up")
            assert set(node.living()) == living
            [mine] = double.of_kind("registration")
            [theirs] = other.of_kind("registration")
            assert mine.pid_namespace != theirs.pid_namespace, "neither proves the other's end"
    finally:
        other.close()


def test_a_node_ends_what_a_lost_folder_of_its_installation_left(
    double: ExecutorDouble, node: NodeBench
) -> None:
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    node.kill(signal.SIGKILL)
    other = ExecutorDouble()
    try:
        with a_node(other, node.node_id) as second:
            until(lambda: bool(other.of_kind("registration")))
            assert not node.living() and not second.living()
            assert (
                other.of_kind("registration")[0].pid_namespace
                == double.of_kind("registration")[0].pid_namespace
            )
    finally:
        other.close()


def test_a_node_that_joins_by_another_address_keeps_its_mark_as_long_as_its_incarnation(
    double: ExecutorDouble, node: NodeBench
) -> None:
    """The ledger knows the mark of the incarnation: what runs meanwhile must be killed by it."""
    run(double, "echo up; exec sleep 600")
    line(node, "up")
    node.kill(signal.SIGKILL)
    node.installation = "by-dns"
    node.join(double.url)
    node.start()
    run(double, "echo up; exec sleep 600", "0/6/0/0")
    line(node, "up", "0/6/0/0")
    node.installation = INSTALLATION
    assert len(node.living()) >= 4, "a step and a worker of each"
    node.kill(signal.SIGKILL)
    other = ExecutorDouble()
    try:
        with a_node(other, node.node_id) as second:
            until(lambda: bool(other.of_kind("registration")))
            assert not node.living() and not second.living()
            proofs = {report.pid_namespace for report in other.of_kind("registration")}
            assert proofs == {double.of_kind("registration")[0].pid_namespace}
    finally:
        other.close()


def test_a_node_without_a_mark_gets_the_id_that_its_executor_names_and_no_worker_notices(
    double: ExecutorDouble,
) -> None:
    """As after an upgrade of the control plane; the next incarnation is the first with the id."""
    double.installation = "abc123"
    with a_node(double, start=False) as node:
        node.installation = ""
        node.join(double.url)
        node.start()
        before = double.wait_for("registration").pid_namespace
        run(double, "echo up; exec sleep 600")
        line(node, "up")
        living = set(node.living())
        node.kill(signal.SIGKILL)
        hellos = len(double.hellos)
        node.start()
        double.wait(lambda: len(double.hellos) > hellos)
        assert set(node.living()) == living and "/" not in before
        with double.changed:
            double.restore(1)
        double.wait(lambda: len(double.of_kind("registration")) == 2)
        assert double.of_kind("registration")[1].pid_namespace == f"{before}/abc123"
        assert not node.living()
