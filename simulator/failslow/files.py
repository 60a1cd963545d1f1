"""Reads labelled iteration times from a Parquet file.

Columns: `job`, `iteration` and `seconds`; and, if they are there, `tokens`, `kind`, `label_start`
and `label_end`. Rows may come in any order. A label is the first and the last slow iteration of a
slowdown, repeated on rows of its job; a job with several slowdowns has rows with each of them, or
lists. Without labels, or with a label that is null or negative, a job is healthy.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from services.failslow.core.detection.kinds import is_training
from simulator.failslow.series import Bools, Floats, Label, Series

REQUIRED = ("job", "iteration", "seconds")
OPTIONAL = ("tokens", "kind", "label_start", "label_end")


def read_series(path: Path) -> list[Series]:
    """Return the jobs of the file, by name.

    Raises ValueError, with the column and the rule, for a file that cannot be read so.
    """
    table = _table(path)
    jobs = np.array([str(name) for name in table["job"].to_pylist()])
    iteration = _numbers(path, table, "iteration")
    seconds = _numbers(path, table, "seconds")
    usable = np.isfinite(iteration) & np.isfinite(seconds) & (seconds > 0)
    if not usable.any():
        raise ValueError(f"{path}: seconds: no row has a positive time and an iteration")
    tokens = _tokens(path, table)
    masked = ~np.array([is_training(kind) for kind in _kinds(table)])
    order = np.lexsort((-seconds, iteration, jobs))
    order = order[usable[order]]
    begins = np.flatnonzero(np.r_[True, jobs[order][1:] != jobs[order][:-1]])
    series = []
    for rows in np.split(order, begins[1:]):
        # Ranks of one iteration that are listed apart wait for the slowest.
        rows = rows[np.r_[True, np.diff(iteration[rows]) != 0]]
        series.append(
            Series(
                str(jobs[rows[0]]),
                iteration[rows].astype(np.int64),
                seconds[rows],
                _continued(tokens[rows], masked[rows]),
                masked[rows],
                _labels(path, table, rows, int(iteration[rows[-1]])),
            )
        )
    return series


def _table(path: Path) -> dict[str, pa.ChunkedArray]:
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a Parquet file: {error}") from None
    for name in REQUIRED:
        if name not in table.column_names:
            raise ValueError(
                f"{path}: {name}: no such column; required are {', '.join(REQUIRED)}, "
                f"optional {', '.join(OPTIONAL)}"
            )
    if table.num_rows == 0:
        raise ValueError(f"{path}: no rows")
    return {name: table[name] for name in (*REQUIRED, *OPTIONAL) if name in table.column_names}


def _numbers(path: Path, table: dict[str, pa.ChunkedArray], name: str) -> Floats:
    """Return a column as floats; nulls are NaN."""
    try:
        values = table[name].cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"{path}: {name}: must be numbers: {error}") from None
    return np.array(values.to_numpy(), np.float64)


def _tokens(path: Path, table: dict[str, pa.ChunkedArray]) -> Floats:
    if "tokens" not in table or pa.types.is_null(table["tokens"].type):
        return np.full(len(table["job"]), np.nan)
    return _numbers(path, table, "tokens")


def _kinds(table: dict[str, pa.ChunkedArray]) -> list[str]:
    """Return kinds; where none is a known name of training, the most frequent one is."""
    if "kind" not in table:
        return [""] * len(table["job"])
    kinds = ["" if kind is None else str(kind) for kind in table["kind"].to_pylist()]
    if not any(map(is_training, set(kinds))):
        usual = max(sorted(set(kinds)), key=kinds.count)
        kinds = ["" if kind == usual else kind for kind in kinds]
    return kinds


def _continued(tokens: Floats, masked: Bools) -> Floats:
    """Return the work of each iteration: where none is given that of the one before, or 1."""
    known = np.isfinite(tokens) & (tokens > 0)
    if not (known & ~masked).any():
        return np.ones(len(tokens))
    source = np.maximum.accumulate(np.where(known, np.arange(len(tokens)), -1))
    source[source < 0] = int(np.flatnonzero(known)[0])
    filled: Floats = tokens[source]
    return filled


def _labels(
    path: Path, table: dict[str, pa.ChunkedArray], rows: NDArray[np.intp], last: int
) -> tuple[Label, ...]:
    """Return the distinct labels of these rows; one without an end lasts to the last iteration."""
    if "label_start" not in table:
        return ()
    starts = table["label_start"].take(rows).to_pylist()
    ends = table["label_end"].take(rows).to_pylist() if "label_end" in table else [None] * len(rows)
    pairs = {
        pair
        for start, end in set(zip(map(_hashable, starts), map(_hashable, ends), strict=True))
        for pair in _pairs(start, end)
    }
    try:
        labels = {(_whole(start), _whole(end)) for start, end in pairs}
    except (TypeError, ValueError):
        raise ValueError(f"{path}: label_start, label_end: must be iteration numbers") from None
    return _merged(
        (start, last if end is None or end < 0 else end)
        for start, end in labels
        if start is not None and start >= 0
    )


def _pairs(start: object, end: object) -> Iterable[tuple[object, object]]:
    if not isinstance(start, tuple):
        return [(start, end)]
    ends = end if isinstance(end, tuple) else (end,) * len(start)
    return zip(start, ends, strict=False)


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _whole(value: Any) -> int | None:
    if value is None or value == "" or value != value:
        return None
    return int(float(value))


def _merged(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return the labels in order, overlapping ones as one; an empty one is no label."""
    merged: list[Label] = []
    for start, end in sorted(label for label in labels if label[1] > label[0]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return tuple(merged)
