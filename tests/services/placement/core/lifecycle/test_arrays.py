"""The program of an array is recorded once in placement's ledger, and forgotten at its end."""

from __future__ import annotations

from shared.contracts.admission import ArrayAccepted, ArrayEnded
from shared.contracts.job_spec import JobSpec
from shared.contracts.placement import ArrayProgramNoted
from tests.services.placement.core.lane import Lane, lane

SPEC = JobSpec(name="train", command=("python",), env={"A": "1"})


def accepted(pool: Lane, *, once: bool = True) -> list[object]:
    message = ArrayAccepted(job_id="a", tenant="vision", array_size=2, spec=SPEC, program_once=once)
    return list(pool.feed(pool.an("admission", message)))


def test_the_program_is_noted_once() -> None:
    pool = lane()
    noted = ArrayProgramNoted(job_id="a", tenant="vision", command=("python",), env={"A": "1"})
    assert accepted(pool) == [noted]
    assert accepted(pool) == []


def test_an_array_with_repeated_programs_is_not_noted() -> None:
    assert accepted(lane(), once=False) == []


def test_the_end_of_an_array_is_noted_once() -> None:
    pool, end = lane(), ArrayEnded(job_id="a", tenant="vision")
    assert pool.feed(pool.an("admission", end)) == []
    accepted(pool)
    assert pool.feed(pool.an("admission", end)) == [end]
    assert pool.state.arrays == {}
