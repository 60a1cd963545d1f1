"""A step whose process was started before its worker was known, and what becomes of that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from berth_agent.linux import files, processes
from berth_agent.node.launch.spare_step import SpareStep
from berth_agent.step.spec import Spec
from berth_agent.token_names import STEP_TOKEN
from berth_agent.tokens import NodeTokens
from tests.agent.step_bench import AGENT, StepBench, until

pytestmark = pytest.mark.process
TOKENS = partial(NodeTokens, f"spare-{os.getpid()}", "")


def with_token(token: str) -> list[int]:
    return list(processes.with_token(token, (STEP_TOKEN,)))


@pytest.fixture
def spare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpareStep]:
    monkeypatch.setattr("berth_agent.node.launch.spare_step.REFILL_S", 0.0)
    made = SpareStep(str(tmp_path), TOKENS)
    yield made
    made.close()
    assert with_token(TOKENS().prefix) == []


@pytest.fixture
def bench() -> Iterator[StepBench]:
    """A step that is specified and not started yet."""
    with tempfile.TemporaryDirectory(prefix="berth-step-") as folder:
        made = StepBench(Path(folder))
        files.write_json(str(made.folder / "spec.json"), Spec(made.values).to_json())
        yield made
        made.close()


def run(bench: StepBench) -> None:
    """Let the prepared worker run to its end."""
    until(lambda: bench.phase == "prepared")
    bench.go()
    until(lambda: bench.phase == "dead")
    assert bench.state["exit_code"] == 0


def waiting(spare: SpareStep) -> tuple[str, int]:
    """Return token and process of a spare that waits."""
    spare.refill()
    [token] = spare.tokens()
    until(lambda: bool(with_token(token)))
    [pid] = with_token(token)
    return token, pid


def test_a_spare_becomes_the_step_of_the_next_worker(spare: SpareStep, bench: StepBench) -> None:
    token, pid = waiting(spare)
    spare.refill()
    assert spare.tokens() == {token}, "there is one at most"
    assert spare.new_token() == token and spare.tokens() == set()
    assert spare.start(token, str(bench.folder)) == (0, "")
    assert bench.state["pid"] != pid and bench.state["pid"] in with_token(token)
    run(bench)
    until(lambda: not with_token(token))


def test_without_a_spare_that_lives_a_step_is_started_then(
    spare: SpareStep, bench: StepBench
) -> None:
    token, pid = waiting(spare)
    assert spare.new_token() == token
    os.kill(pid, signal.SIGKILL)
    code, errors = spare.start(token, str(bench.folder))
    assert (code, errors) == (0, "")
    run(bench)


def test_a_dead_spare_or_one_of_another_installation_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("berth_agent.node.launch.spare_step.REFILL_S", 0.0)
    installation = [""]
    node_id = TOKENS().node_id
    spare = SpareStep(str(tmp_path), lambda: NodeTokens(node_id, installation[0]))
    token, pid = waiting(spare)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not with_token(token))
    assert spare.new_token() != token
    token, _ = waiting(spare)
    installation[0] = "0a1b2c3d4e5f"
    assert spare.new_token().startswith(f"{node_id}:0a1b2c3d4e5f:")
    until(lambda: not with_token(token))


def test_a_worker_that_is_refused_leaves_no_process(spare: SpareStep) -> None:
    token, _ = waiting(spare)
    assert spare.new_token() == token
    spare.drop(token)
    assert with_token(token) == []
    spare.drop("unknown")


def test_a_spare_ends_with_its_agent(tmp_path: Path) -> None:
    code = f"""
import sys, time
sys.path.insert(0, {str(AGENT)!r})
from berth_agent.node.launch.spare_step import SpareStep
from berth_agent.tokens import NodeTokens
spare = SpareStep({str(tmp_path)!r}, lambda: NodeTokens("n1", ""))
spare.refill()
print(*spare.tokens(), flush=True)
time.sleep(600)
"""
    agent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    token = agent.stdout.readline().strip()
    until(lambda: bool(with_token(token)))
    agent.kill()
    agent.communicate()
    until(lambda: not with_token(token))
