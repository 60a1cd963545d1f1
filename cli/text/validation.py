"""Text of a validation of nodes: what deviates, and all that was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

VALIDATED = "nodes.validated.v1"
NOTABLE = 1.05
"""Multiple of the usual time from which a part is listed."""


def verdict_lines(result: Mapping[str, object]) -> Iterator[str]:
    """Yield the verdict, its evidence, and the slowest measurements."""
    nodes = cast("Sequence[str]", result["node_ids"])
    suspects = cast("Sequence[str]", result["suspect_node_ids"])
    confidence = float(cast("float", result["confidence"]))
    if suspects:
        yield (
            f"slow: {result['part']} of {' and '.join(suspects)} ({result['cause']}, confidence"
            f" {confidence:.2f})"
        )
    else:
        yield f"no part of {len(nodes)} nodes is known to be slow"
    for sentence in cast("Sequence[str]", result["evidence"]):
        yield f"  {sentence}"
    measured = cast("Sequence[Mapping[str, object]]", result["measured"])
    yield f"  {len(measured)} parts measured, pairs in {result['rounds']} rounds"
    for part in sorted(measured, key=_ratio, reverse=True):
        if _ratio(part) >= NOTABLE:
            seconds = float(cast("float", part["seconds"]))
            yield f"  {part['node_id']} {part['part']}: {seconds:.4g} s, {_ratio(part):.2f} times"
    for node in cast("Sequence[str]", result["silent_node_ids"]):
        yield f"  {node}: nothing was measured"


def _ratio(part: Mapping[str, object]) -> float:
    return float(cast("float", part["ratio"]))
