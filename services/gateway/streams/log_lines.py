"""Output of a job: what is stored by its name, then what was read of `logs` since."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from services.gateway.streams.completion import Completion, ReadJob
from services.gateway.streams.job_log import (
    ALL,
    JobLog,
    JobNow,
    LogLine,
    Newest,
    Selection,
    WorkerRun,
    in_order,
)
from services.gateway.streams.recent_lines import (
    TURN_RECORDS,
    Held,
    HeldRun,
    OpenLine,
    RecentLines,
    in_turns,
)
from services.gateway.streams.sse import ALIVE, CHUNK_BYTES, OPENING, end_frame
from shared.job_logs.chunk import Chunk, JobKey, Worker
from shared.job_logs.log_store import JobLogStore
from shared.objects.objects import StoreUnreachable

ENDED = "ended"
"""Reason of the end of a stream that holds all lines."""
OUTPUT_MISSING = "output_missing"
"""Reason of the end of a stream of a job that has ended, where lines of a worker may be missing."""


class JobOutput:
    """The selected output of one job, wherever it lies; `store` is None where none is kept."""

    def __init__(
        self,
        recent: RecentLines,
        store: JobLogStore | None,
        job: JobKey,
        selection: Selection = ALL,
        *,
        is_later: bool = False,
    ) -> None:
        """`is_later`: the job was transferred to this pool, and its lines name its id there."""
        self.recent = recent
        self.job = job
        self.selection = selection
        self.log = JobLog(selection, job.job_id if is_later else "")
        self._store = store

    async def chunks(self) -> list[Chunk]:
        """Return the chunks of the selection, and note which workers have ended."""
        if self._store is None:
            return []
        chunks = await self._store.chunks(self.job, self.selection.worker)
        for chunk in chunks:
            if chunk.is_last:
                self.log.note_end(chunk.worker)
        return [chunk for chunk in chunks if self.selection.has(chunk.worker)]

    async def runs(self, chunk: Chunk) -> list[WorkerRun]:
        """Return what a chunk has."""
        assert self._store is not None
        stored = await self._store.runs(self.job, chunk)
        return [WorkerRun(run.at_ms, chunk.worker, run) for run in stored]

    async def recent_runs(self, records: Iterable[Held]) -> AsyncIterator[HeldRun]:
        """Yield the runs of records, each new line once, and note which workers have ended."""
        due = dict(self.log.due)
        async for held in in_turns(records):
            worker = held.worker
            if held.is_last:
                self.log.note_end(worker)
            first = max(held.first, due.get(worker, 0))
            if first < held.next and self.selection.has(worker):
                due[worker] = held.next
                yield HeldRun(held, first)

    async def recent_lines(self, records: Iterable[Held]) -> AsyncIterator[list[LogLine]]:
        """Yield the new lines of records, those of a few of them together."""
        runs: list[WorkerRun] = []
        async for run in self.recent_runs(records):
            runs.append(_decoded(run))
            if len(runs) == TURN_RECORDS:
                yield self.lines(runs)
                runs = []
        if runs:
            yield self.lines(runs)

    def lines(self, runs: Iterable[WorkerRun]) -> list[LogLine]:
        """Return the lines of runs that are new, each with what is missing before it."""
        return [line for run in runs for line in self.log.lines(run.worker, run.run)]


async def read_lines(output: JobOutput) -> list[LogLine]:
    """Return lines that are stored or were read. Raises StoreUnreachable."""
    recent = output.recent.records(output.job)
    chunks, most_lines = await output.chunks(), output.selection.most_lines
    if output.selection.from_line is not None:
        return await _read_range(output, chunks, recent)
    newest, held_from = Newest[HeldRun | WorkerRun](most_lines), dict[Worker, int]()
    async for held in output.recent_runs(recent):
        held_from.setdefault(held.worker, held.first)
        newest.add(held)
    for chunk in sorted(chunks, key=lambda one: one.end_ms, reverse=True):
        end = held_from.get(chunk.worker, chunk.next)
        if chunk.first >= end:
            continue
        if newest.reaches(chunk.end_ms):
            newest.is_cut = True
            break
        for run in await output.runs(chunk):
            if (older := run.run.up_to(end)) is not None:
                newest.add(run._replace(run=older))
    runs = in_order([_decoded(run) async for run in in_turns(newest.runs())])
    if newest.is_cut:
        for run in reversed(runs):
            output.log.due[run.worker] = run.run.first
    return output.lines(runs)[-most_lines:]


async def _read_range(output: JobOutput, chunks: list[Chunk], recent: list[Held]) -> list[LogLine]:
    """Return the first lines of one worker from a number on."""
    first, worker, most_lines = (
        output.selection.from_line or 0,
        output.selection.worker,
        output.selection.most_lines,
    )
    assert worker is not None
    output.log.due[worker] = first
    lines: list[LogLine] = []
    for chunk in (chunk for chunk in chunks if chunk.next > first):
        if len(lines) >= most_lines:
            break
        lines.extend(output.lines(await output.runs(chunk)))
    held = [run async for run in output.recent_runs(recent)]
    async for run in in_turns(sorted(held, key=lambda one: one.first)):
        if len(lines) >= most_lines:
            break
        lines.extend(output.lines([_decoded(run)]))
    return lines[:most_lines]


def _decoded(run: HeldRun | WorkerRun) -> WorkerRun:
    return WorkerRun(run.at_ms, run.worker, run.decode()) if isinstance(run, HeldRun) else run


async def is_stored(output: JobOutput, read_job: ReadJob) -> bool:
    """Return whether the job has ended, and all its output is stored."""
    job = await read_job()
    if job is None or not job.has_ended:
        return False
    await output.chunks()
    return not (job.attempt and job.prints and output.log.open_workers(job))


class Shows(NamedTuple):
    """The events of a followed stream besides lines and its end."""

    status: bool = False
    """The state of the job, at first and when it changes."""
    open_lines: bool = False
    """States of lines that are not ended, such as bars of progress."""


async def follow_lines(
    output: JobOutput, allowed: Callable[[], bool], read_job: ReadJob, shows: Shows
) -> AsyncIterator[bytes]:
    """Yield frames of present and future lines until the job has ended and its output is complete.

    One that left its pool has no frame of that here. Ends before if the client leaves or its key
    is revoked.
    """
    yield OPENING
    completion = Completion(read_job, output.log)
    shown: JobNow | None = None
    states: dict[Worker, OpenLine] = {}
    recent, key, read_to = output.recent, output.job, -1
    with recent.watched(key) as event:
        async for part in _stored_frames(output, allowed):
            yield part
        while allowed():
            event.clear()
            records = recent.records(key, read_to)
            position = recent.positions.get(key.lane, 0)
            if records:
                read_to = records[-1].offset
            has_lines = False
            async for lines in output.recent_lines(records):
                completion.note_lines()
                has_lines = True
                for part in _frames(lines):
                    yield part
            if shows.open_lines:
                states, before = recent.open_lines(key), states
                yield b"".join(_open_frames(states, before, output.selection))
            if not has_lines:
                yield ALIVE
            is_complete = await completion.reached(position, lambda: recent.end(key.lane))
            job = _in_this_pool(completion.job)
            if shows.status and job is not None and job != shown:
                shown = job
                yield _status_frame(job)
            if is_complete:
                yield b"" if job is None else _end_frame_of(completion.missing_workers())
                return
            await _wait(event, completion.pause_s())
        yield end_frame("key_revoked")


def _in_this_pool(job: JobNow | None) -> JobNow | None:
    return job if job is not None and job.next_stay is None else None


async def _wait(event: asyncio.Event, most_s: float) -> None:
    try:
        async with asyncio.timeout(most_s):
            await event.wait()
    except TimeoutError:
        return


async def _stored_frames(output: JobOutput, allowed: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Yield what is stored, a chunk at a time, and what has been stored meanwhile.

    Without its store a stream has what was read of `logs` since, and says what is missing.
    """
    read_to: dict[Worker, int] = {}
    try:
        while new := [c for c in await output.chunks() if c.next > read_to.get(c.worker, 0)]:
            for chunk in _in_time(new):
                if not allowed():
                    return
                read_to[chunk.worker] = max(chunk.next, read_to.get(chunk.worker, 0))
                for part in _frames(output.lines(await output.runs(chunk))):
                    yield part
    except StoreUnreachable:
        return


def _in_time(chunks: list[Chunk]) -> list[Chunk]:
    """Sort chunks by time, those of a worker by their lines."""
    latest: dict[Worker, int] = {}
    keys: dict[Chunk, tuple[int, Worker, int]] = {}
    for chunk in sorted(chunks):
        at_ms = latest[chunk.worker] = max(chunk.begin_ms, latest.get(chunk.worker, 0))
        keys[chunk] = (at_ms, chunk.worker, chunk.first)
    return sorted(chunks, key=keys.__getitem__)


def _frames(lines: list[LogLine]) -> Iterator[bytes]:
    """Join the frames of lines to parts of about `CHUNK_BYTES`."""
    frames: list[bytes] = []
    size = 0
    for line in lines:
        frames.append(_frame(line))
        size += len(frames[-1])
        if size >= CHUNK_BYTES:
            yield b"".join(frames)
            frames, size = [], 0
    if frames:
        yield b"".join(frames)


def _frame(line: LogLine) -> bytes:
    return b"event: line\ndata: %b\n\n" % msgspec.json.encode(line)


def _open_frames(
    present: dict[Worker, OpenLine], opened: dict[Worker, OpenLine], selection: Selection
) -> Iterator[bytes]:
    for worker, state in present.items():
        if selection.has(worker) and opened.get(worker) != state:
            data = LogLine(worker.attempt, worker.rank, state.line, state.text)
            yield b"event: open\ndata: %b\n\n" % msgspec.json.encode(data)


def _end_frame_of(missing_workers: list[int]) -> bytes:
    if missing_workers:
        return end_frame(OUTPUT_MISSING, workers=missing_workers)
    return end_frame(ENDED)


def _status_frame(job: JobNow) -> bytes:
    status: dict[str, object] = {"phase": job.phase, "reason": job.reason, "attempt": job.attempt}
    failure = None if job.has_ended else job.failure
    more = {"pool": job.pool, "silent_nodes": job.silent_nodes, "failure": failure}
    status |= {name: value for name, value in more.items() if value}
    return b"event: status\ndata: %b\n\n" % msgspec.json.encode(status)
