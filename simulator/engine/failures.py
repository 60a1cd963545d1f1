"""Node failures and repairs: from a recorded list of faults, or drawn from a seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from simulator.workload.errors import TraceError, first_line
from simulator.workload.locate import locate

SERVERS = 400
"""Servers of the cluster behind the recorded faults; 231 of them ever failed (StepFun, 349
days).
"""
MTBF_S = 60 * 86_400.0
REPAIR_S = 4 * 3_600.0


class NodeFailure(NamedTuple):
    """A node is down from `down_s` to `up_s` (inf: for ever), cluster seconds of the trace's
    clock.
    """

    node_id: str
    down_s: float
    up_s: float


def draw_failures(
    node_ids: Sequence[str],
    begin_s: float,
    end_s: float,
    seed: int,
    *,
    mtbf_s: float = MTBF_S,
    repair_s: float = REPAIR_S,
) -> list[NodeFailure]:
    """Draw failures: a Poisson process per node, and repairs of exponential length."""
    chance = Random(seed)
    failures: list[NodeFailure] = []
    for node_id in node_ids:
        down_s = begin_s + chance.expovariate(1 / mtbf_s)
        while down_s < end_s:
            up_s = down_s + chance.expovariate(1 / repair_s)
            failures.append(NodeFailure(node_id, down_s, up_s))
            down_s = up_s + chance.expovariate(1 / mtbf_s)
    return merge_failures(failures)


def read_faults(name: str) -> list[tuple[str, float, float]]:
    """Read (server, start, end) of a parquet file, by path or by name under the shared traces.

    Raises TraceError if it does not exist or lacks the columns `node`, `start_s`, `end_s`.
    """
    path = locate(name)
    try:
        table = pq.read_table(path, columns=["node", "start_s", "end_s"])
        columns = [table[column].to_pylist() for column in ("node", "start_s", "end_s")]
        return [(str(n), float(a), float(b)) for n, a, b in zip(*columns, strict=True)]
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise TraceError(path, f"is no list of faults: {first_line(error)}") from None


def failures_from_faults(
    faults: Iterable[tuple[str, float, float]],
    node_ids: Sequence[str],
    begin_s: float,
    seed: int = 0,
) -> list[NodeFailure]:
    """Map faults (server, start, end) of a real cluster of `SERVERS` to these nodes.

    A seeded shuffle assigns servers to nodes, healthy ones included, so that a small pool has as
    many faults per node as the real one; nodes beyond `SERVERS` stay healthy.
    """
    valid_faults = [(server, start, end) for server, start, end in faults if end > start]
    names = sorted({server for server, _, _ in valid_faults})
    dealt = [*names, *[""] * max(0, SERVERS - len(names))]
    Random(seed).shuffle(dealt)
    node_of = {server: node for server, node in zip(dealt, node_ids, strict=False) if server}
    return merge_failures(
        NodeFailure(node_of[server], begin_s + start, begin_s + end)
        for server, start, end in valid_faults
        if server in node_of
    )


def merge_failures(failures: Iterable[NodeFailure]) -> list[NodeFailure]:
    """Return failures by time; overlapping ones of one node are merged."""
    of_node: dict[str, list[NodeFailure]] = {}
    for failure in sorted(failures, key=lambda failure: (failure.down_s, failure.node_id)):
        merged = of_node.setdefault(failure.node_id, [])
        if merged and failure.down_s <= merged[-1].up_s:
            merged[-1] = merged[-1]._replace(up_s=max(merged[-1].up_s, failure.up_s))
        else:
            merged.append(failure)
    return sorted(
        (f for merged in of_node.values() for f in merged), key=lambda f: (f.down_s, f.node_id)
    )
