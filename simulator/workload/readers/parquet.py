"""Reader of job traces in the shared parquet columns; a wrong column is an error, never guessed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from simulator.workload.errors import TraceError, first_line
from simulator.workload.table import NUMBERS, REQUIRED, TEXTS, Raw

COLUMNS = tuple(dict.fromkeys((*NUMBERS, *TEXTS)))


def read_raw(path: Path) -> Raw:
    """Read the columns of a job as they are in the file."""
    if not path.is_file():
        raise TraceError(path, "no such file")
    try:
        schema = pq.read_schema(path)
        _require(path, schema.names)
        selected = [name for name in COLUMNS if name in schema.names]
        return Raw(path, pq.read_table(path, columns=selected, partitioning=None))
    except (pa.ArrowException, OSError) as error:
        raise TraceError(path, f"is not a readable parquet file ({first_line(error)})") from error


def _require(path: Path, names: Sequence[str]) -> None:
    for column in REQUIRED:
        if column not in names:
            raise TraceError(path, "is required but missing", column=column)
    for column in COLUMNS:
        if list(names).count(column) > 1:
            raise TraceError(path, "appears more than once", column=column)
