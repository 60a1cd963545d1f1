from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.llm.traces import COLUMNS, read_llm_trace, servegen_requests
from simulator.workload.errors import TraceError

ROW = {"request_id": "0", "tenant": "a", "arrival_s": 1.5, "input_tokens": 9, "output_tokens": 4}


def written(folder: Path, *rows: dict[str, object]) -> str:
    path = folder / "trace.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return str(path)


def test_a_trace_is_read_by_arrival(tmp_path: Path) -> None:
    first, second = read_llm_trace(written(tmp_path, ROW, {**ROW, "arrival_s": 0.5}))
    assert (first.arrival_s, second.arrival_s) == (0.5, 1.5)
    assert (first.prompt_tokens, first.output_tokens) == (9, 4)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column_is_an_error(tmp_path: Path, column: str) -> None:
    row = {name: value for name, value in ROW.items() if name != column}
    with pytest.raises(TraceError, match=f"column {column}: is required"):
        read_llm_trace(written(tmp_path, row))


@pytest.mark.parametrize(
    ("column", "value"), [("arrival_s", -1.0), ("input_tokens", 0), ("output_tokens", None)]
)
def test_a_wrong_value_is_an_error(tmp_path: Path, column: str, value: object) -> None:
    with pytest.raises(TraceError, match=f"column {column}, row 1"):
        read_llm_trace(written(tmp_path, ROW, {**ROW, column: value}))


def test_a_file_that_is_no_parquet_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    path.write_text("no")
    with pytest.raises(TraceError, match="not a readable parquet file"):
        read_llm_trace(str(path))


def test_few_tenants_send_most_of_the_synthetic_requests() -> None:
    requests = read_llm_trace("synthetic", seed=1)
    assert requests == servegen_requests(1)
    counts = sorted(
        [
            sum(request.tenant == name for request in requests)
            for name in {r.tenant for r in requests}
        ]
    )
    assert sum(counts[-10:]) > len(requests) / 2
