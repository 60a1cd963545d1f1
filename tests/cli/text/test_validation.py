"""The text of a validation names what is slow, then the slowest measurements."""

from __future__ import annotations

from cli.text.validation import verdict_lines
from shared.contracts.validation import MeasuredPart, NodesValidated

EVENT = NodesValidated(
    job_id="v1",
    tenant="acme",
    attempt=1,
    node_ids=("n0", "n1", "n2", "n3"),
    silent_node_ids=("n3",),
    rounds=2,
    cause="compute",
    part="node",
    suspect_node_ids=("n1",),
    confidence=0.93,
    evidence=("node of n1: 1.50 times the median of its peers, 50.0 deviations",),
    measured=(
        MeasuredPart(part="processor", node_id="n0", seconds=0.02, ratio=1.0),
        MeasuredPart(part="processor", node_id="n1", seconds=0.03, ratio=1.5),
        MeasuredPart(part="link to n2", node_id="n1", seconds=0.04, ratio=1.06),
    ),
)


def test_a_slow_node_is_named_with_its_figures() -> None:
    assert list(verdict_lines(EVENT.model_dump())) == [
        "slow: node of n1 (compute, confidence 0.93)",
        "  node of n1: 1.50 times the median of its peers, 50.0 deviations",
        "  3 parts measured, pairs in 2 rounds",
        "  n1 processor: 0.03 s, 1.50 times",
        "  n1 link to n2: 0.04 s, 1.06 times",
        "  n3: nothing was measured",
    ]


def test_nothing_is_named_where_nothing_deviates() -> None:
    unknown = EVENT.model_copy(
        update={"suspect_node_ids": (), "part": "", "cause": "unknown", "evidence": ("why",)}
    )
    first, second, *_ = verdict_lines(unknown.model_dump())
    assert (first, second) == ("no part of 4 nodes is known to be slow", "  why")
