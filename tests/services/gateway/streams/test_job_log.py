"""Each line of a job is shown once, in the order of time, with what is missing before it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.gateway.streams.job_log import JobLog, LogLine, Newest, Selection, WorkerRun, in_order
from shared.job_logs.chunk import Run, Worker

FIRST, SECOND = Worker(1, 0), Worker(1, 1)


def run(at_ms: int, first: int, *lines: str, worker: Worker = FIRST) -> WorkerRun:
    return WorkerRun(at_ms, worker, Run(at_ms, first, list(lines)))


def texts(*runs: WorkerRun) -> list[str]:
    log = JobLog()
    return [line.text for one in runs for line in log.lines(one.worker, one.run)]


def test_a_line_that_comes_twice_is_shown_once() -> None:
    assert texts(run(0, 0, "a", "b"), run(0, 0, "a", "b", "c")) == ["a", "b", "c"]
    assert texts(run(0, 3, "d"), run(0, 0, "a")) == ["d"]
    assert texts(run(0, 0, "a"), run(0, 0, "x", worker=SECOND)) == ["a", "x"]


def test_the_lines_that_are_missing_are_counted_before_the_next_one() -> None:
    log = JobLog()
    assert list(log.lines(FIRST, Run(0, 2, ["c", "d"]))) == [
        LogLine(1, 0, 2, "c", 2),
        LogLine(1, 0, 3, "d"),
    ]
    assert [line.missing for line in log.lines(FIRST, Run(0, 9, ["j"]))] == [5]


def test_workers_are_selected_by_rank_and_attempt() -> None:
    assert Selection().has(FIRST) and Selection().worker is None
    assert not Selection(rank=1).has(FIRST) and Selection(rank=1).has(Worker(7, 1))
    assert not Selection(attempt=2).has(FIRST)
    assert Selection(rank=1, attempt=2).worker == Worker(2, 1)


def test_runs_of_a_worker_keep_their_order_where_clocks_differ() -> None:
    runs = [run(9, 0, "a"), run(5, 1, "b"), run(7, 0, "x", worker=SECOND)]
    assert [one.run.lines for one in in_order(runs)] == [["x"], ["a"], ["b"]]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 4)), max_size=30), st.integers(1, 9))
def test_the_newest_lines_are_those_of_all_sorted_by_time(
    sizes: list[tuple[int, int]], most: int
) -> None:
    newest, runs, first = Newest[WorkerRun](most), [], 0
    for at_ms, count in sorted(sizes):
        runs.append(run(at_ms, first, *(str(first + n) for n in range(count))))
        first += count
    for one in reversed(runs):
        newest.add(one)
    kept = [text for one in in_order(newest.runs()) for text in one.run.lines]
    assert kept[-most:] == [str(number) for number in range(first)][-most:]
    assert newest.is_cut == (len(kept) < first)
    assert len(kept) < most + 4


def test_what_is_older_than_enough_lines_is_not_read() -> None:
    newest = Newest[WorkerRun](2)
    newest.add(run(5, 3, "d"))
    assert not newest.reaches(1)
    newest.add(run(4, 2, "c"))
    assert newest.reaches(3) and not newest.reaches(4)
