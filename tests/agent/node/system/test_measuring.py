"""A node is measured now and then; a probe never runs beside a worker."""

from __future__ import annotations

import threading

from berth_agent.linux.nvml import Nvml
from berth_agent.messages import GpuReading, Measurements
from berth_agent.node.system.measuring import PROBED_EVERY, Measuring
from shared.contracts.measurements import Measurements as Contract


class TwoGpus(Nvml):
    """A driver with two GPUs."""

    def __init__(self) -> None:
        return

    def readings(self) -> tuple[GpuReading, ...]:
        return (GpuReading(gpu=0, sm_mhz=1980), GpuReading(gpu=1))


class NoGpus(TwoGpus):
    """A driver without GPUs."""

    def readings(self) -> tuple[GpuReading, ...]:
        return ()


def measured(measuring: Measuring, times: int = 1) -> list[Measurements]:
    taken = []
    for _ in range(times):
        measuring.measure()
        if (newest := measuring.take()) is not None:
            taken.append(newest)
    return taken


def test_processors_are_probed_each_tenth_time_and_gpus_always() -> None:
    taken = measured(Measuring(1.0, lambda: True, TwoGpus()), 2 * PROBED_EVERY)
    assert [one.compute_s is not None for one in taken] == [*[False] * 9, True] * 2
    assert all(len(one.gpus) == 2 for one in taken)
    assert taken[9].copy_s is not None and taken[9].copy_s > 0


def test_no_probe_runs_while_a_worker_does_and_it_is_made_up_for() -> None:
    idle = False
    measuring = Measuring(1.0, lambda: idle, NoGpus())
    assert measured(measuring, 2 * PROBED_EVERY) == []
    idle = True
    (probe,) = measured(measuring)
    assert probe.compute_s is not None


def test_a_worker_that_comes_during_a_probe_spoils_it() -> None:
    answers = iter([True, False])
    measuring = Measuring(1.0, lambda: next(answers), NoGpus())
    measuring._since_probe = PROBED_EVERY
    assert measured(measuring) == []


def test_measurements_are_taken_once_and_are_messages_of_the_contract() -> None:
    measuring = Measuring(1.0, lambda: True, TwoGpus())
    measuring.measure()
    newest = measuring.take()
    assert newest is not None
    Contract.model_validate(newest.to_json())
    assert measuring.take() is None


def test_it_runs_until_it_is_stopped_and_not_at_all_with_an_interval_of_0() -> None:
    stopping, begun = threading.Event(), threading.Event()

    def is_idle() -> bool:
        begun.set()
        return False

    off = Measuring(0.0, is_idle, NoGpus())
    off.start(stopping)
    measuring = Measuring(0.001, is_idle, NoGpus())
    measuring.start(stopping)
    assert begun.wait(60)
    stopping.set()
    assert off.take() is None
