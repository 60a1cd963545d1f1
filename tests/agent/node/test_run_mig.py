"""An agent whose node offers instances of MIG, with the made-up library of the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import NodeBench, W, a_node, run
from tests.agent.nvml_library import compiled
from tests.agent.step_bench import until

pytestmark = pytest.mark.process


def with_driver(node: NodeBench, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(folder)
    variables = {**node.environment(), "LD_LIBRARY_PATH": str(folder)}
    monkeypatch.setattr(node, "environment", lambda: variables)


def test_a_worker_gets_its_instance_and_the_fault_of_its_gpu_concerns_all(
    double: ExecutorDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"gpus": -1, "gpu_type": "h100-1g.10gb", "measure_every_s": 0.2}
    with a_node(double, start=False, **settings) as node:
        with_driver(node, tmp_path, monkeypatch)
        node.start()
        double.wait(lambda: double.joined is not None)
        registration = double.wait_for("registration")
        assert (registration.gpus, registration.gpu_type) == (2, "h100-1g.10gb")
        run(double, "echo $CUDA_VISIBLE_DEVICES", gpus=[1])
        assert double.wait_for("exited", W).exit_code == 0
        assert node.output(W) == "MIG-3b\n"
        double.wait(lambda: any(beat.faulty_gpus == (0, 1) for beat in double.heartbeats))
        until(lambda: "GPU fault: GPU 1" in node.status()["problem"])


def test_an_agent_waits_for_instances_of_its_type(
    double: ExecutorDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"gpus": -1, "gpu_type": "h100-3g.40gb"}
    with a_node(double, start=False, **settings) as node:
        with_driver(node, tmp_path, monkeypatch)
        node.start()
        until(lambda: node.process is not None and node.process.poll() == 1)
        assert "no instance of 3g.40gb is there: GPU 1: 2 of 1g.10gb" in node.log.read_text()
