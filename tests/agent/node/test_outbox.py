"""Reports that survive crashes, full disks and lost answers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_agent.messages import MAX_REPORTS, ExitedReport, Failure, StoppedReport
from berth_agent.node.outbox import BATCH_BYTES, COMPACT_LINES, Outbox

UUID = "a" * 32


def report(number: int) -> StoppedReport:
    return StoppedReport(allocation_id=f"0/{number}/0/0")


def failed(number: int) -> ExitedReport:
    """Return the report of a worker that printed bytes of no encoding."""
    output = ("\N{REPLACEMENT CHARACTER}" * 512,) * 20
    failure = Failure(reason="exit_code", detail="exit code 1", output=output)
    return ExitedReport(allocation_id=f"0/{number}/0/0", exit_code=1, failure=failure)


def opened(folder: Path, uuid: str = UUID) -> Outbox:
    outbox = Outbox(str(folder / "outbox"))
    outbox.open(uuid)
    return outbox


@given(st.lists(st.integers(-1, 5), max_size=40))
def test_numbers_are_dense_and_nothing_is_lost(
    tmp_path_factory: pytest.TempPathFactory, actions: list[int]
) -> None:
    """-1 restarts the agent, 0 adds a report, others acknowledge so many of those sent."""
    folder = tmp_path_factory.mktemp("outbox")
    outbox, added, acknowledged = opened(folder), 0, 0
    for action in actions:
        if action < 0:
            outbox.close()
            outbox = opened(folder)
        elif action == 0:
            added += 1
            outbox.add(report(added))
        else:
            acknowledged = min(acknowledged + action, added)
            outbox.acknowledge(acknowledged)
        first_n, waiting = outbox.batch()
        assert first_n == acknowledged + 1
        assert waiting == tuple(report(n) for n in range(first_n, added + 1))
    outbox.close()


def test_reports_of_another_incarnation_are_void(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    outbox.add(report(1))
    outbox.open("b" * 32)
    assert outbox.batch() == (1, ())
    outbox.close()


def test_a_torn_line_was_never_sent(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    outbox.add(report(1))
    outbox.close()
    with (tmp_path / "outbox").open("ab") as file:
        file.write(b'{"report": {"kind": "sto')
    outbox = opened(tmp_path)
    outbox.add(report(2))
    assert outbox.batch() == (1, (report(1), report(2)))
    outbox.close()


def test_a_full_disk_takes_nothing_and_the_report_is_made_again(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk."""
    import resource
    import signal

    outbox = opened(tmp_path)
    size = os.stat(tmp_path / "outbox").st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
    try:
        with pytest.raises(OSError, match=r"too large|No space"):
            outbox.add(report(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert outbox.is_empty and os.stat(tmp_path / "outbox").st_size == size
    outbox.add(report(1))
    outbox.close()
    assert opened(tmp_path).batch() == (1, (report(1),))


def test_a_batch_is_bounded_and_a_long_file_is_compacted(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    for number in range(1, COMPACT_LINES + 2):
        outbox.add(report(number))
    assert len(outbox.batch()[1]) == MAX_REPORTS
    outbox.acknowledge(COMPACT_LINES + 1)
    outbox.compact(UUID)
    assert (tmp_path / "outbox").read_text().count("\n") == 2
    outbox.close()
    assert opened(tmp_path).first_n == COMPACT_LINES + 2


def test_a_batch_is_bounded_in_encoded_bytes(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    reports = [failed(number) for number in range(1, 12)]
    for each in reports:
        outbox.add(each)
    sent: list[object] = []
    while not outbox.is_empty:
        first_n, batch = outbox.batch()
        content = json.dumps([each.to_json() for each in batch]).encode()
        assert batch and len(content) <= BATCH_BYTES
        sent += batch
        outbox.acknowledge(first_n + len(batch) - 1)
    assert sent == reports
    outbox.close()


def test_reports_that_are_too_large_are_sent_in_halves_and_then_without_output(
    tmp_path: Path,
) -> None:
    outbox = opened(tmp_path)
    for number in (1, 2, 3, 4):
        outbox.add(failed(number))
    counts = []
    while (count := len(outbox.batch()[1])) > 1:
        counts.append(count)
        assert outbox.shrink(count)
    assert counts == [4, 2]
    details = []
    while outbox.shrink(1):
        (shorter,) = outbox.batch()[1]
        assert isinstance(shorter, ExitedReport) and shorter.failure is not None
        assert not shorter.failure.output and shorter.failure.reason == "exit_code"
        details.append(shorter.failure.detail)
    assert details == ["exit code 1", ""]
    outbox.acknowledge(1)
    assert outbox.batch() == (2, (failed(2), failed(3)))
    outbox.close()


def test_a_report_that_waits_is_not_added_again(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    outbox.add(report(1))
    outbox.close()
    outbox = opened(tmp_path)
    outbox.add(report(1))
    assert outbox.batch() == (1, (report(1),))
    outbox.acknowledge(1)
    outbox.add(report(1))
    assert outbox.batch() == (2, (report(1),))
    outbox.close()
