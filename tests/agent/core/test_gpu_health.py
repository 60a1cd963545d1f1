"""Readings of GPUs become conditions of the node; a recorded trace is followed to its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from berth_agent.core.gpu_health import (
    IN_A_ROW,
    LONGEST,
    Conditions,
    GpuHealth,
    differences,
    faults,
    is_of_type,
)
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


def gpus(count: int, name: str = "NVIDIA H100 80GB HBM3") -> tuple[GpuReading, ...]:
    return tuple(GpuReading(gpu=number, name=name) for number in range(count))


def test_a_difference_names_what_is_declared_and_what_is_there() -> None:
    assert list(differences(8, "h100", (), gpus(7))) == ["gpus: 8 declared, the driver lists 7"]
    assert list(differences(1, "a100-80g", (), gpus(1))) == [
        "gpu_type: a100-80g declared, GPU 0 is NVIDIA H100 80GB HBM3"
    ]
    split = GpuReading(gpu=0, name="NVIDIA H100 80GB HBM3", mig_instances=7)
    [words] = differences(-1, "h100", (), (split,))
    assert words.startswith("GPU 0 is split by MIG into 7 instances, which are not placed")
    named = GpuReading(gpu=0, mig_instances=2, mig_uuids=("MIG-a", "MIG-b"))
    [words] = differences(-1, "h100", (), (named,))
    assert words.endswith("name it in unusable_gpus (MIG-a, MIG-b)")


def test_what_is_declared_unusable_or_not_at_all_does_not_differ() -> None:
    split = GpuReading(gpu=0, name="NVIDIA A100-SXM4-40GB", mig_instances=7)
    assert list(differences(2, "h100", (0,), (split, *gpus(2)[1:]))) == []
    assert list(differences(-1, "big", (), gpus(3))) == []
    assert list(differences(0, "cpu", (), (split,))) == []
    health = GpuHealth(declared=2, gpu_type="h100", unusable=(0,))
    health.note((GpuReading(gpu=0, lost=True), *gpus(2)[1:]))
    assert health.conditions == Conditions("", "", "")


@pytest.mark.parametrize(
    ("gpu_type", "name", "is_same"),
    [
        ("h100", "NVIDIA H100 80GB HBM3", True),
        ("nvidia-h100-80gb-hbm3", "NVIDIA H100 80GB HBM3", True),
        ("h200", "NVIDIA H100 80GB HBM3", False),
        ("a10", "NVIDIA A100-SXM4-40GB", False),
        ("a10", "NVIDIA A10G", True),
        ("v100m32", "Tesla V100-SXM2-32GB", True),
        ("rtx-4090", "NVIDIA GeForce RTX 4090", True),
        ("rtx-4090", "NVIDIA GeForce RTX 3090", False),
        ("t4", "Tesla T4", True),
        ("l40s", "NVIDIA L4", False),
        ("slot", "NVIDIA L4", True),
        ("gpu-8", "NVIDIA L4", True),
        ("p4d", "NVIDIA A100-SXM4-40GB", True),
    ],
)
def test_a_type_is_compared_by_the_model_that_it_names(
    gpu_type: str, name: str, is_same: bool
) -> None:
    assert is_of_type(gpu_type, name) is is_same


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
