"""Gangs wait for closer GPUs where their links cost more than the wait."""

from __future__ import annotations

from services.placement.core.round.view import view_of
from services.placement.core.solver.contended import instance_for_round, solve_now
from services.placement.core.solver.look_ahead_gangs import GangRoom, openings_of
from services.placement.core.solver.releases import next_releases
from shared.contracts.placement import JobPlaced
from tests.services.placement.core.lane import Lane, job, only

SPREAD = {"rack": 0.5, "spine": 0.1}
WORK = 1.0


def split(run_s: float = 100.0) -> Lane:
    """Two nodes in two racks, each with one free GPU; a job on the other GPU of the first."""
    made = Lane()
    made.pool(solver="cpsat", solver_ms=500)
    made.node("a", 2, rack="r1")
    made.run(job("runs", walltime_s=run_s))
    made.node("b", 1, rack="r2")
    return made


def gang(made: Lane, run_s: float | None) -> list[JobPlaced]:
    made.submit(
        job("gang", gpus=1, workers=2, spread_speeds=SPREAD, walltime_s=run_s), after_ms=1000
    )
    message = solve_now(made.state, WORK)
    return only(JobPlaced, made.feed(made.an("local", message))) if message else []


def test_a_long_gang_waits_until_one_node_has_room() -> None:
    made = split()
    assert gang(made, 1000.0) == []
    made.exited("runs", after_ms=50_000)
    made.wake()
    assert {a.slot.node_id for a in made.job("gang").allocations.values()} == {"a"}


def test_a_short_gang_starts_over_the_spine() -> None:
    made = split()
    gang(made, 5.0)
    assert {a.slot.node_id for a in made.job("gang").allocations.values()} == {"a", "b"}


def test_without_an_estimate_a_gang_does_not_wait() -> None:
    made = split()
    gang(made, None)
    assert made.job("gang").phase == "placed"


def test_openings_are_the_first_moments_of_better_links() -> None:
    made = split()
    made.submit(job("gang", gpus=1, workers=2, spread_speeds=SPREAD, walltime_s=1000.0))
    assert made.state.open_round is not None
    (request,) = instance_for_round(made.state).requests
    view = view_of(made.state, made.now)
    (opening,) = openings_of(view, made.job("gang"), request, next_releases(view))
    assert opening == (made.job("runs").started_at + 100_000, 1000)
    room = GangRoom(request)
    room.shift("r2", 1000, 0, 1)
    assert room.fastest() == 0
    room.shift("r1", 800, 0, 1)
    assert room.fastest() == 80
    room.shift("r2", 700, 0, 1)
    assert room.fastest() == 350
    room.shift("r1", 800, 1, 2)
    assert room.fastest() == 800
