"""A node whose driver's library lists other or failed GPUs: refused at its join, then cordoned."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from infra.machine.owned_folders import scratch_folder
from tests.agent.nvml_library import SOURCE
from tests.e2e.agents.jobs import POOL, berth, submit
from tests.e2e.agents.test_nodes import problems
from tests.e2e.joined import JoinedNode
from tests.e2e.stand import Stand, eventually

pytestmark = pytest.mark.stack

NODE = "gpus-1"


class GpuNode(JoinedNode):
    """A node with the made-up library, which lists three GPUs."""

    def __init__(self, stand: Stand, folder: Path) -> None:
        self.driver = folder / "driver"
        self.driver.mkdir(mode=0o755)
        self.refusal = ""
        compiler = shutil.which("cc") or "cc"
        library = self.driver / "libnvidia-ml.so.1"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SOURCE], check=True)
        super().__init__(stand, POOL, folder, NODE)

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "LD_LIBRARY_PATH": str(self.driver)}

    def join(self, *executors: str) -> None:
        """Join with two GPUs, then with those that there are: GPU 0 alone may be used."""
        done = self.call("join", self._stand.stack.gateway, "--token", "t.none", "--node-id", NODE)
        self.refusal = done.stderr
        own = {"gpus": 3, "gpu_type": "a100", "unusable_gpus": [1, 2], "measure_every_s": 1.0}
        self.settings |= {**own, "labels.gpus": "real"}
        super().join(*executors)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_node_with_failed_gpus_is_cordoned_and_an_operator_uses_it_all_the_same(
    stand: Stand,
) -> None:
    with scratch_folder("gpus") as folder, ExitStack() as stack:
        node = GpuNode(stand, folder)
        stack.callback(node.close)
        assert "gpus: 2 declared, the driver lists 3" in node.refusal
        node.start()
        eventually(lambda: problems(node) == ["gpu_fault"])
        row = eventually(lambda: (row := node.row()) and row["cordoned"] and row)
        assert row["reason"] == "gpu_fault: GPU 0 (GPU-1a2b): 7 uncorrected memory errors"
        shown = berth(stand, "nodes", "show", NODE)
        assert "Reset the GPU or restart the machine" in shown and "7 uncorrected" in shown
        assert "GPU fault: GPU 0 (GPU-1a2b)" in node.status()["problem"]
        job_id = submit(stand, "exit 0", node_selector={"gpus": "real"})
        eventually(lambda: "being drained" in berth(stand, "why", job_id))
        berth(stand, "uncordon", NODE)
        assert stand.ended(job_id)["phase"] == "succeeded"
        berth(stand, "cordon", NODE)  # its agent ends here: no job of a later test may wait for it
