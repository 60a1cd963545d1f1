"""Lookup of traces: a path, or a name in the folder of traces, which `BERTH_TRACES` names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from simulator.workload.errors import TraceError
from simulator.workload.table import REQUIRED

VARIABLE = "BERTH_TRACES"
ROOT = Path(__file__).resolve().parents[2]


def traces_folder(environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> Path | None:
    """Return the folder of traces; by default `../shared/traces` beside a checkout, if `root` is
    one, else None.
    """
    if folder := environ.get(VARIABLE):
        return Path(folder)
    return root.parent / "shared" / "traces" if (root / "pyproject.toml").is_file() else None


def locate(name: str, folder: Path | None = None) -> Path:
    """Return a file or folder as named, else a file of the folder of traces, suffix optional."""
    if folder is None:
        folder = traces_folder()
    candidates = [Path(name)]
    if folder is not None:
        candidates += [folder / name, folder / f"{name}.parquet"]
    for candidate in candidates:
        if candidate.is_file() or (name and candidate.is_dir()):
            return candidate
    if folder is None:
        rule = f"no such file, and {VARIABLE} is not set; it names the folder of traces"
        raise TraceError(Path(name), rule)
    traces = ", ".join(path.stem for path in job_traces(folder)) or "no job trace"
    raise TraceError(Path(name), f"no such file, and {folder} ({VARIABLE}) has {traces}")


def has_trace(name: str) -> bool:
    """Return whether the folder of traces has the parquet file of that name."""
    folder = traces_folder()
    return folder is not None and (folder / f"{name}.parquet").is_file()


def job_traces(folder: Path) -> list[Path]:
    """Return the parquet files of `folder` that have the columns of a job trace, by name."""
    return [path for path in sorted(folder.glob("*.parquet")) if _holds_jobs(path)]


def _holds_jobs(path: Path) -> bool:
    try:
        return set(REQUIRED) <= set(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        return False
