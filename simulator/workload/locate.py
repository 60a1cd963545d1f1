"""Lookup of traces: a path, or a name in the folder of shared traces beside the project."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from simulator.workload.errors import TraceError
from simulator.workload.table import REQUIRED

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"


def locate(name: str, folder: Path = TRACES) -> Path:
    """Return a file or folder as named, else a file of `folder`, suffix optional."""
    for candidate in (Path(name), folder / name, folder / f"{name}.parquet"):
        if candidate.is_file() or (name and candidate.is_dir()):
            return candidate
    traces = ", ".join(path.stem for path in job_traces(folder)) or "no job trace"
    raise TraceError(Path(name), f"no such file, and {folder} has {traces}")


def job_traces(folder: Path = TRACES) -> list[Path]:
    """Return the parquet files of `folder` that have the columns of a job trace, by name."""
    return [path for path in sorted(folder.glob("*.parquet")) if _holds_jobs(path)]


def _holds_jobs(path: Path) -> bool:
    try:
        return set(REQUIRED) <= set(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        return False
