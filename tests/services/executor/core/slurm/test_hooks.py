"""Notes of Slurm's scripts show where a lost gang has ended, and why a forgotten one did."""

from __future__ import annotations

import pytest

from services.executor.core.engines.contract import EnginePhase, GangProgress
from services.executor.core.slurm.hooks import (
    CLOCKS_APART_S,
    SETTLE_S,
    cleared_nodes,
    ended_job,
    lost_gangs,
    notes_of,
    with_notes,
)
from tests.services.executor.core.engines.looks import IDENTITY, engine_job, engine_node, observed

ADA = 1000
BEGUN = {"begun.17.n1": b"1000 500000\n", "begun.17.n2": b"1000 501000\n"}


def test_a_node_is_cleared_once_each_job_that_began_there_has_ended() -> None:
    ends = {"cleared.17.n1": b"1000 600000\n"}
    assert cleared_nodes(notes_of({**BEGUN, **ends}, {ADA}), {}) == {"n1"}
    second = {"begun.18.n1": b"1000 610000\n"}
    assert cleared_nodes(notes_of({**BEGUN, **ends, **second}, {ADA}), {}) == frozenset()
    ends |= {"cleared.17.n2": b"1000 620000\n", "cleared.18.n1": b"1000 620000\n"}
    assert cleared_nodes(notes_of({**BEGUN, **ends, **second}, {ADA}), {}) == {"n1", "n2"}
    assert cleared_nodes([], {}) == frozenset()


def test_a_job_that_began_again_is_not_cleared_by_its_first_end() -> None:
    earlier = {"begun.17.n1": b"1000 700000\n", "cleared.17.n1": b"1000 600000\n"}
    assert cleared_nodes(notes_of(earlier, {ADA}), {}) == frozenset()
    at_once = {"cleared.17.n1": b"1000 700000\n", "begun.17.n1": b"1000 700000\n"}
    assert cleared_nodes(notes_of(at_once, {ADA}), {}) == {"n1"}, "in whatever order they are read"
    assert cleared_nodes(notes_of({"cleared.17.n1": b"1000 600000\n"}, {ADA}), {}) == {"n1"}


def test_a_machine_that_booted_since_runs_nothing() -> None:
    notes = notes_of(BEGUN, {ADA})
    boot_s = 500 + CLOCKS_APART_S + 1
    assert cleared_nodes(notes, {"n1": boot_s, "n2": 100}) == {"n1"}
    assert cleared_nodes(notes, {"n1": boot_s - 1}) == frozenset(), "its clock may have been set"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("cleared.17.n1", b"1001 600000\n"),
        ("cleared.17", b"1000 600000\n"),
        ("cleared.x.n1", b"1000 600000\n"),
        (".cleared.17.n1", b"1000 600000\n"),
        ("cleared.17.n1", b""),
        ("cleared.17.n1", b"1000 600000 or so"),
        ("ended.17", b"1000 600000\n"),
        ("ended.17.n1", b"1000 600000 FAILED 1:0\n"),
    ],
)
def test_what_is_no_note_of_berths_users_counts_nothing(name: str, line: bytes) -> None:
    assert notes_of({name: line}, {ADA}) == []


@pytest.mark.parametrize(
    ("line", "code", "reason"),
    [
        (b"1000 600000 OUT_OF_MEMORY 0:125\n", 253, "out_of_memory"),
        (b"1000 600000 CANCELLED 0:15\n", 143, "engine_cancelled"),
        (b"1000 600000 FAILED 3:0\n", 3, ""),
        (b"1000 600000 COMPLETED 0:0\n", 0, ""),
    ],
)
def test_a_forgotten_job_ended_as_slurmctld_noted_it(line: bytes, code: int, reason: str) -> None:
    job = ended_job(IDENTITY, notes_of({"ended.17": line}, {ADA}))
    assert job is not None and (job.ref, job.phase) == ("17", EnginePhase.ENDED)
    assert (job.exit_code, job.failure.reason) == (code, reason)
    assert job.lost_node, "the note comes before the processes have ended"
    assert ended_job(IDENTITY, notes_of(BEGUN, {ADA})) is None


def test_gangs_without_a_job_or_with_a_node_that_was_given_up_are_lost() -> None:
    assert lost_gangs(observed()) == [IDENTITY]
    assert lost_gangs(observed(engine_job())) == []
    assert lost_gangs(observed(engine_job(EnginePhase.ENDED))) == []
    assert lost_gangs(observed(engine_job(EnginePhase.ENDED, lost_node=True))) == [IDENTITY]
    assert lost_gangs(observed(engine_job(EnginePhase.ENDING, lost_node=True))) == []


def test_a_look_has_the_end_of_a_job_that_slurm_does_not_show_any_more() -> None:
    files = {**BEGUN, "cleared.17.n1": b"1000 600000\n", "ended.17": b"1000 590000 TIMEOUT 0:1\n"}
    begun = observed(progress=GangProgress(is_begun=True), n2=engine_node("n2", boot_id="100"))
    look = with_notes(begun, {IDENTITY: notes_of(files, {ADA})})
    [job] = look.jobs_of(IDENTITY)
    assert job.failure.reason == "walltime"
    progress = look.progress[IDENTITY]
    assert progress.is_begun and progress.cleared == {"n1"} and progress.settle_s == SETTLE_S
    shown = engine_job(EnginePhase.ENDED, lost_node=True)
    look = with_notes(observed(shown), {IDENTITY: notes_of(files, {ADA})})
    assert look.jobs_of(IDENTITY) == (shown,)
