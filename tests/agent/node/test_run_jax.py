"""The snippet of the page makes one JAX cluster of the workers of a gang, where there is JAX."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import NodeBench, launch

pytestmark = [
    pytest.mark.parts,
    pytest.mark.process,
    pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="no JAX here"),
]
PAGE = Path(__file__).parents[3] / "docs" / "operations" / "training.md"
WORKERS = 2
SHOWN = """
print("process", jax.process_index(), "of", jax.process_count(), flush=True)
"""


def test_the_workers_of_a_gang_are_one_cluster(
    double: ExecutorDouble, node: NodeBench, tmp_path: Path
) -> None:
    snippet = PAGE.read_text().partition("## JAX")[2].partition("```python")[2].partition("```")[0]
    script = tmp_path / "cluster.py"
    script.write_text(f"import sys; sys.path[:0] = {sys.path!r}\n{snippet}{SHOWN}")
    names = [f"0/5/0/{rank}" for rank in range(WORKERS)]
    gang = {"world_size": WORKERS, "local_world_size": WORKERS, "master_addr": "127.0.0.1"}
    env = {"JAX_PLATFORMS": "cpu"}
    for rank, name in enumerate(names):
        ranks = {"rank": rank, "local_rank": rank, "gpus": [rank]}
        order = launch([sys.executable, str(script)], env=env, **gang, **ranks)
        double.order("prepare", name, launch=order)
    ready = [double.wait_for("ready", name) for name in names]
    for name in names:
        double.order("go", name, master_port=ready[0].master_port)
    for rank, name in enumerate(names):
        assert double.wait_for("exited", name).exit_code == 0, node.output(name)
        assert f"process {rank} of {WORKERS}" in node.output(name)
