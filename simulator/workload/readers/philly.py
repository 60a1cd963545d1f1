"""`cluster_job_log` of Microsoft Philly (msr-fiddle/philly-traces, ATC '19, CC BY 4.0): JSON.

One array of jobs {status, vc, jobid, attempts, submitted_time, user}; an attempt is {start_time,
end_time, detail: [{ip, gpus: [...]}]}. A job's duration is the sum of its attempts, the time that
it held GPUs (the authors' notebook counts from the first start to the last end); its GPUs are those
of its first attempt that names any, as in the notebook. A job without an attempt never started; one
whose attempt lacks a start or an end has a run of unknown length and is left out, counted.

Times have no zone. They are taken as they stand, but for attempts that end before they start in the
two hours in which Pacific clocks were set back: those are one hour longer.
"""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from simulator.workload.delimited import EMPTY, to_table
from simulator.workload.errors import TraceError
from simulator.workload.files import open_trace, peek
from simulator.workload.readers.runs import LEFT_OUT, NO_END, drop_left_out, first_submit_s
from simulator.workload.table import NEVER_STARTED, Raw

NAMES = {
    "job_id": "jobid",
    "tenant": "vc",
    "submit_s": "submitted_time",
    "duration_s": "attempts",
    "gpus": "attempts",
}
LOG = "cluster_job_log"
STATES = {"pass": "completed", "failed": "failed", "killed": "cancelled"}
CHUNK_BYTES = 1 << 20
LONGEST_TOKEN = 32
"""Characters of a literal, number or escape that a chunk's end may cut."""

SET_BACK = (datetime(2017, 11, 5, 1), datetime(2017, 11, 5, 2))  # noqa: DTZ001 - as in the file
HOUR_S = 3600.0
NO_GPUS = "attempts that name no GPU"

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - only differences matter
_SPACE = " \t\r\n"


@dataclass(slots=True)
class _Columns:
    """Columns collected job by job."""

    job_id: list[str] = field(default_factory=list)
    tenant: list[str | None] = field(default_factory=list)
    user: list[str | None] = field(default_factory=list)
    submit_s: list[float] = field(default_factory=list)
    queue_s: list[float | None] = field(default_factory=list)
    duration_s: list[float | None] = field(default_factory=list)
    gpus: list[float | None] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
    left_out: list[str | None] = field(default_factory=list)

    def table(self) -> pa.Table:
        texts = {
            name: pa.array(getattr(self, name), pa.string())
            for name in ("job_id", "tenant", "user", "state", LEFT_OUT)
        }
        numbers = {
            name: np.array(getattr(self, name), np.float64)
            for name in ("submit_s", "queue_s", "duration_s", "gpus")
        }
        return to_table({**texts, **numbers})


@dataclass(frozen=True, slots=True)
class _Job:
    """One object of the array with its position."""

    file: Path
    row: int
    fields: Mapping[str, Any]

    def refuse(self, column: str, rule: str) -> TraceError:
        return TraceError(self.file, rule, column=column, row=self.row)

    def text(self, column: str) -> str | None:
        if column not in self.fields:
            raise self.refuse(column, "is required but missing")
        value = self.fields[column]
        if value is not None and not isinstance(value, str):
            raise self.refuse(column, f"must be text, is {value!r}")
        return None if value is None or value in EMPTY else value

    def time_s(self, column: str, text: object) -> float | None:
        if text is None or text in EMPTY:
            return None
        try:
            return (datetime.fromisoformat(str(text)) - _EPOCH).total_seconds()
        except (ValueError, TypeError):
            rule = f"must be a time such as 2017-10-07 01:11:39, is {text!r}"
            raise self.refuse(column, rule) from None

    def attempts(self) -> list[Mapping[str, Any]]:
        attempts = self.fields.get("attempts")
        if not isinstance(attempts, list) or not all(
            isinstance(attempt, dict) for attempt in attempts
        ):
            raise self.refuse("attempts", "must be a list of objects")
        return attempts


def read_raw(path: Path) -> Raw:
    """Read the log itself, or the folder that holds it under its public name."""
    file = path / LOG if path.is_dir() else path
    if not peek(file).strip():
        raise TraceError(file, "is empty")
    columns = _Columns()
    with open_trace(file) as stream:
        for row, fields in enumerate(_objects(file, stream)):
            _add(columns, _Job(file, row, fields))
    if not columns.job_id:
        raise TraceError(file, "holds no rows")
    table = columns.table()
    return drop_left_out(file, table, NAMES, first_submit_s(table))


def _add(columns: _Columns, job: _Job) -> None:
    submit_s = job.time_s("submitted_time", job.text("submitted_time"))
    job_id = job.text("jobid")
    if submit_s is None or job_id is None:
        raise job.refuse("submitted_time" if job_id else "jobid", "must not be empty")
    attempts = job.attempts()
    spans = [_span_s(job, number, attempt) for number, attempt in enumerate(attempts)]
    gpus = next(filter(None, (_gpus(job, n, one) for n, one in enumerate(attempts))), None)
    starts_s = [start_s for start_s, _ in spans if start_s is not None]
    lengths_s = [end - start for start, end in spans if start is not None and end is not None]
    columns.job_id.append(job_id)
    columns.tenant.append(job.text("vc"))
    columns.user.append(job.text("user"))
    columns.submit_s.append(submit_s)
    columns.queue_s.append(_wait_s(submit_s, starts_s))
    columns.duration_s.append(sum(lengths_s) if spans else None)
    columns.gpus.append(gpus)
    state = STATES.get((job.text("status") or "").lower(), "unknown")
    columns.state.append(state if spans else NEVER_STARTED)
    missing = NO_END if len(lengths_s) < len(spans) else NO_GPUS if spans and not gpus else None
    columns.left_out.append(missing)


def _wait_s(submit_s: float, starts_s: list[float]) -> float | None:
    """Return the wait; None without a start, or with one before the submit (invalid)."""
    return min(starts_s) - submit_s if starts_s and min(starts_s) >= submit_s else None


def _span_s(
    job: _Job, number: int, attempt: Mapping[str, Any]
) -> tuple[float | None, float | None]:
    column = f"attempts[{number}]"
    start_s = job.time_s(f"{column}.start_time", attempt.get("start_time"))
    end_s = job.time_s(f"{column}.end_time", attempt.get("end_time"))
    if start_s is None or end_s is None or end_s >= start_s:
        return start_s, end_s
    back_s = [(clock - _EPOCH).total_seconds() for clock in SET_BACK]
    if back_s[0] <= end_s <= start_s < back_s[1]:
        return start_s, end_s + HOUR_S
    rule = f"must not lie before the start, is {attempt.get('end_time')!r}"
    raise job.refuse(f"{column}.end_time", rule)


def _gpus(job: _Job, number: int, attempt: Mapping[str, Any]) -> float:
    try:
        return float(sum(len(server["gpus"]) for server in attempt.get("detail") or ()))
    except (KeyError, TypeError):
        rule = "must be a list of servers, each with a list of gpus"
        raise job.refuse(f"attempts[{number}].detail", rule) from None


def _objects(file: Path, stream: IO[bytes]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of one JSON array; at most one and a chunk are in memory."""
    decoder = json.JSONDecoder()
    text = _Text(file, stream)
    if text.next_character() != "[":
        raise TraceError(file, "must be a JSON array of jobs")
    text.at += 1
    row = 0
    while (character := text.next_character()) != "]":
        if row and character == ",":
            text.at += 1
            text.next_character()
        elif row:
            raise text.refuse(row, "must have a comma before it")
        value = text.decoded(decoder, row)
        if not isinstance(value, dict):
            raise text.refuse(row, "must be a JSON object")
        yield value
        row += 1


class _Text:
    """A JSON text that is read on demand."""

    def __init__(self, file: Path, stream: IO[bytes]) -> None:
        self.at = 0
        self._file, self._stream, self._text, self._row = file, stream, "", 0
        # A character may be cut by a chunk's end.
        self._decoder = getincrementaldecoder("utf-8")()

    def refuse(self, row: int, rule: str) -> TraceError:
        return TraceError(self._file, rule, row=row)

    def next_character(self) -> str:
        """Return the next character that is no space; `at` is its index."""
        while True:
            while self.at < len(self._text) and self._text[self.at] in _SPACE:
                self.at += 1
            if self.at < len(self._text):
                return self._text[self.at]
            if not self._more():
                raise self.refuse(self._row, "the JSON array is cut short")

    def decoded(self, decoder: json.JSONDecoder, row: int) -> object:
        """Decode the value at `at`, which moves behind it."""
        self._row = row
        while True:
            try:
                value, self.at = decoder.raw_decode(self._text, self.at)
                return value
            except json.JSONDecodeError as error:
                if not self._may_go_on(error) or not self._more():
                    rule = f"is not readable JSON, or is cut short ({error.msg})"
                    raise self.refuse(row, rule) from None

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Return whether the error may be caused by text that is not read yet."""
        near_end = error.pos >= len(self._text) - LONGEST_TOKEN
        return near_end or error.msg.startswith("Unterminated string")

    def _more(self) -> bool:
        """Read another chunk, if there is one, and drop the used text."""
        fresh = ""
        while not fresh:
            chunk = self._stream.read(CHUNK_BYTES)
            try:
                fresh = self._decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError:
                raise self.refuse(self._row, "must be UTF-8") from None
            if not chunk:
                return False
        self._text, self.at = self._text[self.at :] + fresh, 0
        return True
