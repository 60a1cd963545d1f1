"""Problems of GPUs are kept by node until they are over."""

from __future__ import annotations

from services.failslow.core.health.gpu_problems import GpuProblems, fault_id_of
from shared.contracts.node_problems import NodeGpusNoted, NodeProblem


def noted(problem: NodeProblem, present: bool, detail: str = "") -> NodeGpusNoted:
    return NodeGpusNoted(
        node_id="n2", incarnation="i", problem=problem, present=present, detail=detail
    )


def test_a_node_has_its_problems_until_the_last_is_over() -> None:
    problems = GpuProblems()
    problems.note(noted("gpu_fault", True, "GPU 0: Xid 79"))
    problems.note(noted("gpu_slow", True, "GPU 1 is slowed down by heat"))
    assert problems.of("n2") == ("gpu_fault", "gpu_slow")
    assert problems.sentences("n2") == (
        "gpu_fault of n2: GPU 0: Xid 79",
        "gpu_slow of n2: GPU 1 is slowed down by heat",
    )
    problems.note(noted("gpu_fault", False))
    assert problems.of("n2") == ("gpu_slow",)
    problems.note(noted("gpu_slow", False))
    problems.note(noted("gpu_slow", False))
    assert problems == GpuProblems()


def test_a_problem_counts_once_per_incarnation() -> None:
    first, again = noted("gpu_slow", True, "900 MHz"), noted("gpu_slow", True, "950 MHz")
    assert fault_id_of(first) == fault_id_of(again) == "n2/i/gpu_slow"
