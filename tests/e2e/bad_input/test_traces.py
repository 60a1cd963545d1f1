"""A workload trace that cannot be replayed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.main import app

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("command", [("replay",), ("demo", "--check", "--trace")])
def test_a_trace_without_a_column_is_named_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    path = tmp_path / "short.parquet"
    pq.write_table(pa.table({"job_id": ["a"], "submit_s": [0.0], "gpus": [1.0]}), path)
    with pytest.raises(SystemExit) as ended:
        app([*command, str(path)])
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert "short.parquet" in message
    assert "duration_s" in message
    assert "Traceback" not in message
