from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.spot.nodes import MODEL, read_node_gpus
from simulator.workload.errors import TraceError


def file_of(folder: Path, columns: Mapping[str, Sequence[object]]) -> str:
    path = folder / "nodes.parquet"
    pq.write_table(pa.table(dict(columns)), path)
    return str(path)


def test_the_first_nodes_of_a_model_are_read(tmp_path: Path) -> None:
    columns: dict[str, Sequence[object]] = {
        "gpu_model": ["A10", MODEL, MODEL, MODEL],
        "gpu_capacity_num": [1, 8, 4, 8],
    }
    trace = file_of(tmp_path, columns)
    assert read_node_gpus(trace).tolist() == [8, 4, 8]
    assert read_node_gpus(trace, most=2).tolist() == [8, 4]
    assert read_node_gpus(trace, "A10").tolist() == [1]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"gpu_model": [MODEL]}, "gpu_capacity_num"),
        ({"gpu_model": ["A10"], "gpu_capacity_num": [1]}, f"has no node of {MODEL}"),
    ],
)
def test_a_file_without_such_nodes_is_refused(
    columns: dict[str, Sequence[object]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(TraceError, match=message):
        read_node_gpus(file_of(tmp_path, columns))


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nodes.parquet").write_text("nodes")
    with pytest.raises(TraceError, match="cannot be read"):
        read_node_gpus(str(tmp_path / "nodes.parquet"))
