"""Lists of real nodes are read in their public formats, and what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.workload.errors import TraceError
from simulator.workload.locate import TRACES
from simulator.workload.nodes import WorkloadNode, gpus_by_type, read_nodes

OPENB = "sn,cpu_milli,memory_mib,gpu,model\nn-1,32000,262144,0,\nn-2,96000,393216,8,V100M32\n"
SHARED = {
    "alibaba_gpu_2023_nodes": (1523, 6212),
    "alibaba_pai_2020_machines": (1897, None),
    "alibaba_spot_2026_nodes": (4278, 10412),
}


def read(folder: Path, name: str, text: str) -> list[WorkloadNode]:
    path = folder / name
    path.write_text(text)
    return read_nodes(str(path))


def test_nodes_of_alibaba_2023(tmp_path: Path) -> None:
    bare, full = read(tmp_path, "openb_node_list_all_node.csv", OPENB)
    assert bare == WorkloadNode("n-1", 0, None, 32, 256)
    assert full == WorkloadNode("n-2", 8, "v100m32", 96, 384)


def test_machines_of_pai_have_no_header(tmp_path: Path) -> None:
    text = "m1,CPU,96,512,0\nm2,T4,96,512,2\n"
    bare, full = read(tmp_path, "pai_machine_spec.csv", text)
    assert (bare.gpus, bare.gpu_type) == (0, None)
    assert full == WorkloadNode("m2", 2, "t4", 96, 512)


def test_nodes_of_the_spot_trace_do_not_say_their_memory(tmp_path: Path) -> None:
    text = "gpu_model,gpu_capacity_num,cpu_num,node_name\nA100-SXM4-80GB,8,128,17\n"
    (node,) = read(tmp_path, "node_info_df.csv", text)
    assert node == WorkloadNode("17", 8, "a100-sxm4-80gb", 128, None)


def test_parquet_lists_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    columns = {"node": ["a"], "cpu_milli": [1000], "memory_mib": [1024], "gpu": [2], "model": ["P"]}
    pq.write_table(pa.table(columns), path)
    assert read_nodes(str(path)) == [WorkloadNode("a", 2, "p", 1, 1)]


def test_gpus_are_counted_by_type(tmp_path: Path) -> None:
    nodes = read(tmp_path, "nodes.csv", OPENB + "n-3,1,1,4,\n")
    assert gpus_by_type(nodes) == {"unknown": 4, "v100m32": 8}


@pytest.mark.parametrize(
    ("old", "new", "column", "row"),
    [
        (",8,", ",8.5,", "gpu", 1),
        (",8,", ",-8,", "gpu", 1),
        (",8,", ",,", "gpu", 1),
        ("96000", "many", "cpu_milli", 1),
        ("393216", "inf", "memory_mib", 1),
        ("gpu,", "gpus,", None, None),
    ],
)
def test_a_defect_is_named_by_its_place(
    tmp_path: Path, old: str, new: str, column: str | None, row: int | None
) -> None:
    with pytest.raises(TraceError) as caught:
        read(tmp_path, "nodes.csv", OPENB.replace(old, new))
    assert (caught.value.column, caught.value.row) == (column, row)


@pytest.mark.parametrize("name", SHARED)
def test_the_shared_lists_are_read_whole(name: str) -> None:
    if not (TRACES / f"{name}.parquet").is_file():
        pytest.skip(f"needs the shared trace {name}")
    nodes = read_nodes(name)
    count, gpus = SHARED[name]
    assert len(nodes) == count == len({node.name for node in nodes})
    if gpus is not None:
        assert sum(node.gpus for node in nodes) == gpus
