"""Workers and nodes are read with all that they need, and other demands have the share wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.contracts.gang_needs import GPU, NodeKind
from simulator.gpu_parts.openb import read_kinds, read_workers, shape_of, with_multi, with_share
from simulator.workload.errors import TraceError

PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
a,6000,12288,1,460,,LS,Running,0,100,0
b,88000,1024,8,1000,V100M16|V100M32,BE,Succeeded,5,100,5
c,4000,2048,0,0,,BE,Pending,9,,
"""
NODES = """\
sn,cpu_milli,memory_mib,gpu,model
n0,32000,262144,0,
n1,96000,393216,8,G2
"""
SHAPES = [
    *[shape_of(0.5, 1, 1, "")] * 40,
    *[shape_of(1, 1, 1, "")] * 60,
    *[shape_of(8, 1, 1, "")] * 2,
    *[shape_of(0, 1, 1, "")] * 10,
]


def test_workers_that_never_ran_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(PODS)
    assert read_workers(str(tmp_path / "pods.csv")) == [
        shape_of(0.46, 6, 12, ""),
        shape_of(8, 88, 1, "v100m16|v100m32"),
        shape_of(0, 4, 2, ""),
    ]


def test_nodes_are_read_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    assert read_kinds(str(tmp_path / "nodes.csv")) == [
        NodeKind("", 0, 32_000, 262_144, ()),
        NodeKind("g2", 8, 96_000, 393_216, ()),
    ]


def test_a_file_that_lacks_a_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,gpu\nn0,8\n")
    with pytest.raises(TraceError, match="cpu_milli"):
        read_kinds(str(tmp_path / "nodes.csv"))


@pytest.mark.parametrize("percent", [40, 80, 100])
def test_parts_of_gpus_request_the_share_wanted(percent: int) -> None:
    shapes = with_share(SHAPES * 20, percent)
    total = sum(shape.worker_milli for shape in shapes)
    parts = sum(shape.worker_milli for shape in shapes if shape.milli < GPU)
    assert len(shapes) == len(SHAPES) * 20
    assert 100 * parts / total == pytest.approx(percent, abs=2)


def test_workers_of_several_gpus_request_the_share_wanted() -> None:
    shapes = with_multi(SHAPES, 50)
    total = sum(shape.worker_milli for shape in shapes)
    several = sum(shape.worker_milli for shape in shapes if shape.gpus > 1)
    assert shapes[: len(SHAPES)] == SHAPES
    assert 50 <= 100 * several / total < 55
