"""Readings of GPUs become conditions of the node; a recorded trace is followed to its end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from berth_agent.core.gpu_health import IN_A_ROW, LONGEST, Conditions, GpuHealth, faults
from berth_agent.core.gpu_inventory import MigInstance
from berth_agent.messages import GpuReading

TRACE = Path(__file__).with_name("gpu_trace.jsonl")
HOT = GpuReading(gpu=1, sm_mhz=900, most_sm_mhz=1980, slowdowns=("heat",))
COOL = GpuReading(gpu=1, sm_mhz=1980, most_sm_mhz=1980)


def test_before_a_reading_and_without_a_driver_nothing_is_known() -> None:
    health = GpuHealth(declared=8, gpu_type="h100")
    assert health.conditions == Conditions(None, None, None)
    health.note(())
    assert health.conditions == Conditions(None, None, None)
    assert health.conditions.problem == ""


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (GpuReading(gpu=3, lost=True), ["GPU 3 does not answer"]),
        (
            GpuReading(gpu=0, uuid="GPU-1a", xids=(31, 79)),
            ["GPU 0 (GPU-1a): Xid 79, it has fallen off the bus"],
        ),
        (GpuReading(gpu=0, rows_failed=True), ["GPU 0 could not replace a memory row"]),
        (GpuReading(gpu=0, uncorrected_errors=2), ["GPU 0: 2 uncorrected memory errors"]),
        (GpuReading(gpu=0, xids=(13, 31, 43, 63, 94), rows_pending=True), []),
    ],
)
def test_a_fault_is_what_needs_a_reset_or_service(reading: GpuReading, words: list[str]) -> None:
    assert list(faults(reading)) == words


def test_conditions_name_the_gpus_that_they_are_about() -> None:
    health = GpuHealth(unusable=(7,))
    lost, unused = GpuReading(gpu=3, lost=True), GpuReading(gpu=7, lost=True)
    for _ in range(IN_A_ROW):
        health.note((HOT, lost, unused))
    assert (health.conditions.faulty, health.conditions.slowed) == ((3,), (1,))
    for _ in range(IN_A_ROW):
        health.note((COOL, unused))
    assert (health.conditions.faulty, health.conditions.slowed) == ((), ())


def test_instances_have_the_health_of_the_gpu_that_they_are_parts_of() -> None:
    """GPU 0 is whole and no concern of the node; of the two of GPU 1 the last is not offered."""
    health = GpuHealth(gpu_type="h100-1g.10gb", unusable=(3,))
    health.registered = tuple(MigInstance(n // 2, f"MIG-{n}", "1g.10gb") for n in range(2, 6))
    hot = replace(HOT, mig_uuids=("MIG-2", "MIG-3"), mig_profiles=("1g.10gb",) * 2)
    failed = GpuReading(gpu=2, uuid="GPU-2", xids=(79,))
    for _ in range(IN_A_ROW):
        health.note((GpuReading(gpu=0, lost=True), hot, failed))
    assert (health.conditions.slowed, health.conditions.faulty) == ((0, 1), (2,))
    assert health.conditions.fault == "GPU 2 (GPU-2): Xid 79, it has fallen off the bus"


def test_a_gpu_is_slow_after_some_readings_in_a_row_and_well_after_as_many() -> None:
    health = GpuHealth()

    def noted(reading: GpuReading, times: int) -> str | None:
        for _ in range(times):
            health.note((reading,))
        return health.conditions.slow

    assert noted(HOT, IN_A_ROW - 1) == noted(COOL, 1) == noted(HOT, IN_A_ROW - 1) == ""
    slow = noted(HOT, 1)
    assert slow == "GPU 1 is slowed down by heat, 900 of 1980 MHz"
    assert health.conditions.problem == f"GPU slow: {slow}"
    assert noted(COOL, IN_A_ROW - 1) == slow
    assert noted(COOL, 1) == ""


@pytest.mark.parametrize(
    "reading",
    [
        GpuReading(gpu=1, sm_mhz=900, most_sm_mhz=1980, slowdowns=("power_cap", "sync_boost")),
        GpuReading(gpu=1, sm_mhz=1700, most_sm_mhz=1980, slowdowns=("heat",)),
        GpuReading(gpu=1, slowdowns=("heat",)),
        GpuReading(gpu=1, sm_mhz=210, most_sm_mhz=1980),
    ],
    ids=["a setting", "a little", "clock unknown", "idle"],
)
def test_what_is_set_or_small_or_idle_is_no_slow_gpu(reading: GpuReading) -> None:
    health = GpuHealth()
    for _ in range(2 * IN_A_ROW):
        health.note((reading,))
    assert health.conditions == Conditions("", "", "")


def test_a_gpu_that_is_not_offered_fails_unseen() -> None:
    health = GpuHealth(declared=2, gpu_type="h100", unusable=(0,))
    health.note((GpuReading(gpu=0, lost=True), GpuReading(gpu=1, name="NVIDIA H100 80GB HBM3")))
    assert health.conditions == Conditions("", "", "")


def test_an_error_is_remembered_after_the_driver_has_handed_it_out() -> None:
    health = GpuHealth()
    health.note((GpuReading(gpu=0, uuid="GPU-1a", xids=(31, 79)),))
    (later,) = health.note((GpuReading(gpu=0, uuid="GPU-1a", xids=(94,)),))
    assert later.xids == (31, 79, 94)
    assert health.conditions.fault == "GPU 0 (GPU-1a): Xid 79, it has fallen off the bus"
    other = GpuHealth()
    other.take_up(health.memory())
    assert other.memory() == health.memory()


def test_many_faults_are_cut_to_what_a_heartbeat_holds() -> None:
    health = GpuHealth()
    health.note(tuple(GpuReading(gpu=gpu, lost=True) for gpu in range(64)))
    assert len(health.conditions.fault or "") == LONGEST


def test_a_trace_of_readings_leads_to_its_conditions() -> None:
    """The trace has one reading of all GPUs a line, as the library gave them, once a minute."""
    health = GpuHealth(declared=2, gpu_type="h100")
    seen: list[tuple[int, Conditions]] = []
    for minute, line in enumerate(TRACE.read_text().splitlines()):
        health.note(tuple(GpuReading.from_json(reading) for reading in json.loads(line)))
        if not seen or seen[-1][1] != health.conditions:
            seen.append((minute, health.conditions))
    (_, well), (slow_at, slow), (cool_at, cool), (failed_at, failed) = seen
    assert well == cool == Conditions("", "", "")
    assert (slow_at, cool_at, failed_at) == (8, 16, 19)
    assert slow.slow == "GPU 1 (GPU-b1) is slowed down by hardware and heat, 1005 of 1980 MHz"
    assert failed.fault == "GPU 0 (GPU-a0): Xid 79, it has fallen off the bus"
