"""Workers with secrets: the values reach their environment, and no file on a disk."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from berth_agent.node.config import Config
from berth_agent.node.files.secret_folder import SecretFolder
from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import NodeBench, W, launch, line, run
from tests.agent.step_bench import until

pytestmark = pytest.mark.process
MARKER = "marker-90b2\nwith two lines and an ä"
SECRETS = {
    "env": {"PASS": "secret://db", "A": "1", "RANK": "secret://rank"},
    "secrets": {"PASS": MARKER, "RANK": MARKER},
}
CHECK = 'printf %s "$PASS" | sha256sum; echo rank $RANK'


def kept(node: NodeBench) -> Path:
    """Return the file in memory of the worker of a test."""
    config = Config(state=str(node.state), run=str(node.run_folder))
    return Path(SecretFolder(config).path_of(W.replace("/", "-")))


def holds_no_value(*folders: Path) -> None:
    names = 0
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                assert b"marker-90b2" not in path.read_bytes(), path
                names += 1
    assert names > 3


def digest() -> str:
    from hashlib import sha256

    return sha256(MARKER.encode()).hexdigest()


def test_a_worker_gets_its_secrets_and_no_disk_does(
    double: ExecutorDouble, node: NodeBench
) -> None:
    double.order("prepare", W, launch=launch(f"{CHECK}; read x", **SECRETS))
    double.wait_for("ready", W)
    holds_no_value(node.state, node.run_folder)
    assert not kept(node).exists()
    spec = json.loads((node.folder(W) / "spec.json").read_text())
    assert spec["env"]["PASS"] == "secret://db" and spec["secrets"] == str(kept(node))
    double.order("go", W)
    line(node, digest())
    line(node, "rank 0")
    holds_no_value(node.state)
    double.wait_for("exited", W)
    double.order("forget", W)
    until(lambda: not node.folder(W).exists())
    holds_no_value(node.state)


def test_a_restarted_agent_starts_what_was_prepared_with_its_secrets(
    double: ExecutorDouble, node: NodeBench
) -> None:
    double.order("prepare", W, launch=launch(CHECK, **SECRETS))
    double.wait_for("ready", W)
    node.kill()
    node.start()
    double.order("go", W)
    line(node, digest())
    double.wait_for("exited", W)


def die_before_the_step(node: NodeBench) -> None:
    """Leave the node as if its agent had been killed between the order and the step."""
    node.kill()
    os.kill(node.step(W)["pid"], signal.SIGKILL)
    until(lambda: not node.living())
    for name in ("state.json", "spec.json"):
        (node.folder(W) / name).unlink()


def test_an_agent_that_died_before_the_step_finds_the_values_again(
    double: ExecutorDouble, node: NodeBench
) -> None:
    double.order("prepare", W, launch=launch(CHECK, **SECRETS))
    double.wait_for("ready", W)
    die_before_the_step(node)
    folder = SecretFolder(Config(state=str(node.state), run=str(node.run_folder)))
    assert folder.keep(W.replace("/", "-"), SECRETS["secrets"]) == ""
    stray = kept(node).with_name("0-9-9-9.json")
    stray.write_text("{}")
    node.start()
    until(lambda: not kept(node).exists() and node.step(W).get("phase") == "prepared")
    assert not stray.exists()
    double.order("go", W)
    line(node, digest())


def test_a_worker_without_its_values_starts_elsewhere(
    double: ExecutorDouble, node: NodeBench
) -> None:
    double.order("prepare", W, launch=launch(CHECK, **SECRETS))
    double.wait_for("ready", W)
    die_before_the_step(node)
    node.start()
    failure = double.wait_for("exited", W).failure
    assert (failure.reason, failure.permanent) == ("secret_lost", False)


def test_a_worker_that_never_starts_leaves_no_value(
    double: ExecutorDouble, node: NodeBench
) -> None:
    fields = launch("true", image="img", **SECRETS)
    double.order("prepare", W, launch=fields)
    assert double.wait_for("refused", W).failure.reason == "no_container_runtime"
    until(lambda: not kept(node).exists())


def test_a_job_without_secrets_leaves_no_folder(double: ExecutorDouble, node: NodeBench) -> None:
    run(double, "true")
    double.wait_for("exited", W)
    assert not kept(node).parent.exists()
