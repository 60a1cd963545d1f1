"""Reports and output of workers arrive, whatever is lost or refused on the way."""

from __future__ import annotations

import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from berth_agent.node.output.newest_reports import CHECKPOINTS_MS
from shared.contracts.agents import Checkpoint
from tests.agent.executor_double import ExecutorDouble, Refuse, Vanish
from tests.agent.node_bench import NodeBench, W, launch, run
from tests.agent.step_bench import until

pytestmark = pytest.mark.process


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
    assert not any(lines.is_last for stream in double.streamed for lines in stream.printed)
    double.order("stop", W, grace_s=0.0)
    double.wait(lambda: any(lines.is_last for s in double.streamed for lines in s.printed))


def test_a_checkpoint_is_sent_with_the_time_since_the_start_of_its_worker(
    double: ExecutorDouble, node: NodeBench
) -> None:
    """The worker floods its socket; few of its words leave the node."""
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); from berth_reporter import checkpoint\n"
        "step = 0\n"
        "while True: step += 1; checkpoint(step); time.sleep(0.001)"
    )
    reporter = str(Path(__file__).parents[3] / "reporter")
    double.order("prepare", W, launch=launch([sys.executable, "-c", script, reporter]))
    double.wait_for("ready", W)
    until((node.run_folder / "telemetry" / "0-5-0-0").exists)
    began_s = monotonic()
    double.order("go", W)

    def sent() -> list[Checkpoint]:
        return [checkpoint for stream in double.streamed for checkpoint in stream.checkpoints]

    double.wait(lambda: any(checkpoint.step > 1 for checkpoint in sent()))
    all_sent = sent()
    elapsed_ms = (monotonic() - began_s) * 1000
    assert all_sent[-1].allocation_id == W
    assert 0 < all_sent[-1].ran_ms <= elapsed_ms
    assert len(all_sent) <= 1 + elapsed_ms / CHECKPOINTS_MS


def test_a_start_that_fails_on_every_node_is_refused_for_good(
    double: ExecutorDouble, node: NodeBench
) -> None:
    launches = {
        "command_missing": launch(["no-such-python", "train.py"]),
        "no_command": launch([]),
        "command_unusable": launch(["echo", "a\0b"]),
        "workdir_missing": launch(["true"], workdir="below/nothing"),
    }
    for number, (reason, order) in enumerate(launches.items(), 5):
        worker = f"0/{number}/0/0"
        double.order("prepare", worker, launch=order)
        failure = double.wait_for("refused", worker).failure
        assert (failure.reason, failure.permanent) == (reason, True)


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


def test_the_progress_of_a_training_is_sent_with_the_pace_of_the_node(
    double: ExecutorDouble, node: NodeBench
) -> None:
    """It claims that an iteration takes no time."""
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); from berth_reporter import report\n"
        "for step in range(10**6): report(step, 0.0, steps_total=10**6); time.sleep(0.05)"
    )
    reporter = str(Path(__file__).parents[3] / "reporter")
    double.order("prepare", W, launch=launch([sys.executable, "-c", script, reporter]))
    double.wait_for("ready", W)
    until((node.run_folder / "telemetry" / "0-5-0-0").exists)
    double.order("go", W)
    double.wait(lambda: any(stream.progress for stream in double.streamed))
    [progress] = next(stream.progress for stream in double.streamed if stream.progress)
    assert (progress.allocation_id, progress.steps_total) == (W, 10**6)
    assert 0.05 <= progress.iteration_s <= progress.ran_ms / 1000


def test_a_message_that_is_refused_for_one_worker_loses_no_checkpoint(
    double: ExecutorDouble, node: NodeBench
) -> None:
    """The executor takes no iterations of more than a second."""

    def fault(endpoint: str, message: Any) -> None:
        if endpoint == "stream" and any(max(i.iteration_s) > 1 for i in message.iterations):
            raise Refuse(400)

    double.before = fault
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); from berth_reporter import *\n"
        "for step in range(10**6): report(step, 1e6); checkpoint(7); time.sleep(0.05)"
    )
    reporter = str(Path(__file__).parents[3] / "reporter")
    double.order("prepare", W, launch=launch([sys.executable, "-c", script, reporter]))
    double.wait_for("ready", W)
    until((node.run_folder / "telemetry" / "0-5-0-0").exists)
    double.order("go", W)
    double.wait(lambda: any(c.step == 7 for s in double.streamed for c in s.checkpoints))


def test_a_bar_that_is_printed_is_progress_where_the_job_enables_it(
    double: ExecutorDouble, node: NodeBench
) -> None:
    """The worker does not see the variable that enables it; the job of the other one has none."""
    script = (
        "import os, sys, time\n"
        "for n in range(10**6):\n"
        "    sys.stderr.write(f'\\r  0%|          | {n}/1000000 [00:12<00:20, 31.0it/s]')\n"
        "    sys.stderr.flush(); time.sleep(0.05); assert 'BERTH_PROGRESS' not in os.environ"
    )
    bar = [sys.executable, "-c", script]
    enabled = {"env": {"BERTH_PROGRESS": "output"}}
    for name, job, fields in ((W, "j1", enabled), ("0/6/0/0", "j2", {})):
        double.order("prepare", name, launch=launch(bar, job_id=job, **fields))
        double.wait_for("ready", name)
        double.order("go", name)
    double.wait(lambda: any(stream.progress for stream in double.streamed))
    sent = [progress for stream in double.streamed for progress in stream.progress]
    assert {progress.allocation_id for progress in sent} == {W}
    assert sent[0].steps_total == 10**6
    assert 0.05 <= sent[0].iteration_s <= sent[0].ran_ms / 1000


def test_a_file_of_another_tool_is_streamed_as_iterations_and_a_fifo_in_its_place_holds_up_nothing(
    double: ExecutorDouble, node: NodeBench
) -> None:
    script = (
        "import json, os, sys, time\n"
        "for n in range(1, 10**6):\n"
        "    with open('new', 'w') as file:\n"
        "        json.dump({'gpu_relative_perf_scores': {'0': 0.5, '1': 1.0}}, file)\n"
        "    os.rename('new', 'nvrx.json'); time.sleep(0.5)\n"
        "    if os.path.exists('stop'): break\n"
        "os.unlink('nvrx.json'); os.mkfifo('nvrx.json'); print('fifo', flush=True); input()"
    )
    worker = launch([sys.executable, "-c", script], env={"BERTH_STRAGGLERS": "nvrx.json"})
    double.order("prepare", W, launch=worker)
    double.wait_for("ready", W)
    double.order("go", W)

    def sent() -> list[float | None]:
        return [s for stream in double.streamed for i in stream.iterations for s in i.own_s]

    double.wait(lambda: len(sent()) > 1)
    assert set(sent()) == {2.0}
    (private,) = (path.parent for path in node.state.glob("work/*/nvrx.json"))
    (private / "stop").touch()
    double.wait(lambda: "fifo" in double.lines(W).values())
    double.order("stop", W, grace_s=0.0)
    double.wait(lambda: any(lines.is_last for s in double.streamed for lines in s.printed))
