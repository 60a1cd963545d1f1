"""The journal of started workers across restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.executor.process import journal as module
from services.executor.process.journal import Journal, JournalBusy, JournalDamaged, JournalEntry


def test_a_restart_reads_the_last_entry_of_each_worker(tmp_path: Path) -> None:
    first = Journal(tmp_path / "journal")
    first.write(JournalEntry("0/1/0/0", "starting", "t1"))
    first.write(JournalEntry("0/1/0/0", "running", "t1", 42, 7))
    first.write(JournalEntry("0/2/0/0", "running", "t2", 43, 8))
    first.forget("0/2/0/0")
    first.close()
    second = Journal(tmp_path / "journal")
    assert second.entries == [JournalEntry("0/1/0/0", "running", "t1", 42, 7)]
    second.close()


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = Journal(path)
    first.write(JournalEntry("0/1/0/0", "running", "t1", 42, 7))
    first.close()
    with path.open("ab") as file:
        file.write(b'{"allocation_id":"0/2/0/0","sta')
    second = Journal(path)
    second.write(JournalEntry("0/3/0/0", "starting", "t3"))
    second.close()
    third = Journal(path)
    assert [e.allocation_id for e in third.entries] == ["0/1/0/0", "0/3/0/0"]
    third.close()


def test_damage_in_the_middle_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b'garbage\n{"allocation_id":"a","state":"starting"}\n')
    with pytest.raises(JournalDamaged):
        Journal(path)


def test_two_executors_of_one_name_do_not_share_a_machine(tmp_path: Path) -> None:
    first = Journal(tmp_path / "journal")
    with pytest.raises(JournalBusy):
        Journal(tmp_path / "journal")
    first.close()
    Journal(tmp_path / "journal").close()


def test_forgotten_entries_are_compacted_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMPACT_LINES", 10)
    journal = Journal(tmp_path / "journal")
    journal.write(JournalEntry("kept", "running", "t"))
    for n in range(20):
        journal.write(JournalEntry(f"0/{n}/0/0", "running", "t"))
        journal.forget(f"0/{n}/0/0")
    journal.close()
    assert (tmp_path / "journal").read_bytes().count(b"\n") <= 12
    again = Journal(tmp_path / "journal")
    assert [e.allocation_id for e in again.entries] == ["kept"]
    again.close()


def test_only_wanted_allocations_of_a_lane_are_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    for name in ("0/1/0/0", "0/2/0/0", "1/1/0/0"):
        journal.write(JournalEntry(name, "ended", "t", exit_code=0))
    journal.keep("0/", {"0/2/0/0"})
    assert [e.allocation_id for e in journal.entries] == ["0/2/0/0", "1/1/0/0"]
    journal.close()
