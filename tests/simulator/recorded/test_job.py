"""Work of a recorded job by hand, over stops and restarts."""

from __future__ import annotations

import pytest

from shared.contracts.job_names import command_digest
from shared.contracts.job_spec import Simulated
from shared.contracts.placement import Allocation
from simulator.recorded.job import RecordedJob
from tests.simulator.recorded.past import spec


def job(**more: object) -> RecordedJob:
    return RecordedJob.enqueued("a", "t", spec(1.0, **more), 0)


def place(one: RecordedJob, at: int) -> None:
    one.place(at, [Allocation(rank=0, node_id="n1", gpus=(0, 1))], ["a100"])
    one.started_at = at + 5


def test_a_job_that_never_stopped_worked_from_its_start_to_its_end() -> None:
    one = job()
    place(one, 100)
    one.end(1105, "succeeded", 1.0)
    assert (one.worked_ms, one.held_ms) == (1000, 1005)
    assert one.work_s(9999, 1.0) == 1.0
    assert one.work_s(9999, 60.0) == 60.0


def test_a_stop_loses_work_and_the_next_start_pays_its_restart() -> None:
    one = job(simulated=Simulated(duration_s=9.0, restart_s=0.2))
    place(one, 0)
    one.stop(1005, 0.3, 1.0)
    one.leave_gpus(1010)
    assert one.kept_ms == pytest.approx(700)
    assert one.stops == 1
    place(one, 2000)
    one.end(3005, "succeeded", 1.0)
    assert one.worked_ms == pytest.approx(700 + 1000 - 200)
    assert one.held_ms == 1010 + 1005


def test_a_measured_restart_goes_before_the_simulated_one() -> None:
    one = job(simulated=Simulated(duration_s=9.0, restart_s=0.2))
    one.stops, one.restart_ms = 1, 400
    place(one, 0)
    assert one.worked_until(1005, 1.0) == 600


def test_the_run_time_of_a_job_that_was_cancelled_while_it_waited_is_unknown() -> None:
    one = job()
    one.end(500, "cancelled", 1.0)
    assert (one.worked_ms, one.ending) == (0, "cancelled")


def test_the_work_of_a_running_job_counts_until_the_ledger_ends_less_what_came_before() -> None:
    one = job()
    place(one, 0)
    one.done_ms = 400
    assert one.work_s(1005, 1.0) == pytest.approx(0.6)


def test_work_is_at_speed_one_where_the_job_names_speeds() -> None:
    one = job(gpu_speeds={"a100": 2.0})
    place(one, 0)
    one.end(1005, "succeeded", 1.0)
    assert one.work_s(0, 1.0) == pytest.approx(2.0)


def test_work_is_that_on_one_node_where_the_job_names_speeds_over_links() -> None:
    one = job(spread_speeds={"rack": 0.5})
    place(one, 0)
    one.spread = "rack"
    one.end(1005, "succeeded", 1.0)
    assert one.work_s(0, 1.0) == pytest.approx(0.5)


def test_private_fields_are_not_kept() -> None:
    one = job(command=("secret", "--seed=1"), image="img", env={"A": "b"}, depends_on=())
    assert (one.spec.image, one.spec.env) == ("", {})
    assert one.spec.command == (command_digest(("secret", "--seed=2"), "img"),)
    assert job(command=()).spec.command == ()


def test_a_replay_distinguishes_commands_as_the_pool_did() -> None:
    recorded = [job(command=(name,)).spec for name in ("train 1", "train 2", "smoke")]
    digests = [command_digest(spec.command, spec.image) for spec in recorded]
    assert digests[0] == digests[1] != digests[2]
