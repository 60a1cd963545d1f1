"""Measurements of a suspected node are sentences in the suspicion, beside those of its like."""

from __future__ import annotations

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.measures import node_notes
from services.failslow.core.measures.node_notes import PROBE_FRESH_MS, READING_FRESH_MS, NodeNotes
from services.failslow.core.measures.peers import Thresholds
from services.failslow.core.suspicion.evidence import Evidence
from shared.contracts.faults import FaultSuspected
from shared.contracts.measurements import GpuReading, MeasuredNode
from shared.contracts.reports import TelemetryReported
from tests.harness.decider import an_input, given
from tests.services.failslow.gangs import POOL, gang, report, verdicts, watched

AT = 10_000_000
HOT = GpuReading(gpu=3, sm_mhz=1200, most_sm_mhz=1980, slowdowns=("heat", "power_cap"))


def probed(
    node_id: str, compute_s: float, copy_s: float = 0.01, gpu_type: str = ""
) -> MeasuredNode:
    return MeasuredNode(node_id=node_id, gpu_type=gpu_type, compute_s=compute_s, copy_s=copy_s)


def notes(*nodes: MeasuredNode, at: int = AT) -> NodeNotes:
    known = NodeNotes()
    known.add(TelemetryReported(executor_id="e1", at=at, times=(), nodes=nodes))
    return known


def peers(count: int = 3, gpu_type: str = "") -> list[MeasuredNode]:
    return [probed(f"p{number}", 0.02, gpu_type=gpu_type) for number in range(count)]


def test_a_slow_probe_is_beside_those_of_its_like() -> None:
    known = notes(*peers(), probed("n2", 0.03))
    assert known.of("n2", AT + 120_000) == (
        "a probe of n2 while idle, 2 min before, was slower than those of 3 nodes of its type:"
        " computing 1.50, copying memory 1.00 times their median",
    )
    (well,) = known.of("p0", AT) or ("",)
    assert "was as fast as" in well


@pytest.mark.parametrize(
    "nodes",
    [
        [*peers(2), probed("n2", 0.03)],
        [*peers(gpu_type="h100"), probed("n2", 0.03, gpu_type="a100")],
        peers(),
    ],
)
def test_without_its_like_or_a_probe_there_is_no_sentence(nodes: list[MeasuredNode]) -> None:
    assert notes(*nodes).of("n2", AT) == ()


def test_old_measurements_do_not_count() -> None:
    known = notes(*peers(), probed("n2", 0.03), MeasuredNode(node_id="n2", gpus=(HOT,)))
    assert len(known.of("n2", AT)) == 2
    assert len(known.of("n2", AT + READING_FRESH_MS + 1)) == 1
    assert known.of("n2", AT + PROBE_FRESH_MS + 1) == ()


@pytest.mark.parametrize(
    ("reading", "sentences"),
    [
        (HOT, ["GPU 3 is slowed down by heat and its power cap, 1200 of 1980 MHz"]),
        (GpuReading(gpu=0, slowdowns=("hardware",)), ["GPU 0 is slowed down by its hardware"]),
        (GpuReading(gpu=0, uncorrected_errors=2), ["GPU 0 has 2 uncorrected memory errors"]),
        (GpuReading(gpu=1, pcie_width=8, most_pcie_width=16), ["GPU 1 has 8 of 16 PCIe lanes"]),
        (GpuReading(gpu=1, pcie_width=16, most_pcie_width=16, sm_mhz=345, most_sm_mhz=1980), []),
        (GpuReading(gpu=1), []),
        (GpuReading(gpu=2, lost=True), ["GPU 2 does not answer"]),
        (GpuReading(gpu=1, xids=(31, 79)), ["GPU 1 had the errors Xid 31, 79"]),
        (GpuReading(gpu=1, mig_instances=7), ["GPU 1 is split by MIG into 7 instances"]),
        (GpuReading(gpu=1, nvlinks=18, nvlinks_down=0, rows_failed=False, rows_pending=False), []),
        (GpuReading(gpu=1, nvlinks=18, nvlinks_down=2), ["GPU 1 has 2 of 18 NVLinks down"]),
        (
            GpuReading(gpu=2, uuid="GPU-1a2b", rows_failed=True, rows_pending=True),
            ["GPU 2 could not replace a memory row: it needs service (GPU-1a2b)"],
        ),
        (GpuReading(gpu=2, rows_pending=True), ["GPU 2 replaces memory rows at its next reset"]),
    ],
)
def test_what_is_unusual_about_a_gpu_is_named(reading: GpuReading, sentences: list[str]) -> None:
    known = notes(MeasuredNode(node_id="n2", gpus=(reading,)))
    assert list(known.of("n2", AT)) == sentences


def test_the_nodes_measured_longest_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_notes, "MOST_NODES", 2)
    known = notes(*peers(5), *(MeasuredNode(node_id=f"g{n}", gpus=(HOT,)) for n in range(5)))
    assert list(known._probes) == ["p3", "p4"]
    assert list(known._gpus) == ["g3", "g4"]


def test_they_are_in_the_suspicion_of_a_worker_of_that_node() -> None:
    decider = FailSlow()
    state, evidence = given(decider, POOL, watched(gang())), Evidence(Thresholds())
    measured = MeasuredNode(node_id="n2", gpus=(HOT,))
    evidence.add(
        TelemetryReported(executor_id="e1", at=1, times=(), nodes=(measured,)), state.gangs
    )
    for at in (1, 2, 3):
        evidence.add(report(at, 1.0, 1.0, 1.5, 1.0), state.gangs)
    (message,) = evidence.take_news(state)
    (fault,) = verdicts(decider, state, [an_input(message, "local")])
    assert isinstance(fault, FaultSuspected)
    assert fault.cause_evidence[-1].startswith("GPU 3 is slowed down by heat")
