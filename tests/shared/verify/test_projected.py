"""A projector that stands is a violation; one that goes on is waited for, and then named."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from shared.ledger.reader import Cursor
from shared.projections.source import LedgerPartition
from shared.verify import projected
from shared.verify.projected import PROJECTED, check_projected
from shared.verify.report import VerifyReport

LANE: LedgerPartition = ("placement", 0)
OTHER: LedgerPartition = ("admission", 0)
ENDS = {LANE: 7, OTHER: 2}


async def checked(monkeypatch: pytest.MonkeyPatch, seqs: Iterator[int]) -> VerifyReport:
    """Return the report, where the projector has reached these records of placement by turns."""

    async def read(_: object) -> dict[LedgerPartition, Cursor]:
        await asyncio.sleep(0)
        return {LANE: Cursor(seq=next(seqs)), OTHER: Cursor(seq=2)}

    report = VerifyReport()
    monkeypatch.setattr(projected, "read_cursors", read)
    monkeypatch.setattr(projected, "LOOK_S", 0.01)
    await check_projected(report, None, ENDS, unmoved_s=0.1, most_s=0.3)
    assert report.rules == [PROJECTED] and report.counts["open"] == len(report.open)
    return report


async def test_it_waits_until_the_ends_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    report = await checked(monkeypatch, iter([3, 5, 5, 7]))
    assert report.ok and not report.open


async def test_a_projector_that_stands_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    report = await checked(monkeypatch, iter(lambda: 4, None))
    [violation] = report.violations
    assert violation.position == "placement/0" and not report.open
    assert violation.detail.startswith("3 records are not projected, and none was for")


async def test_one_that_goes_on_too_slowly_is_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    report = await checked(monkeypatch, iter(range(-1_000_000, 0)))
    [task] = report.open
    assert report.ok and task.position == "placement/0" and task.detail.endswith("yet")
