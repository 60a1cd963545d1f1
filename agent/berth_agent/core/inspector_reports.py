"""The Prometheus file of NCCL's inspector about one GPU, as iterations of its worker. Pure.

The file is written anew every 30 s or more, with the time that collectives took since then. That is
waiting for the other ranks and the transfer itself; the rest of the time is the rank's own work, by
which the rank is found for which the others wait. Two files are needed for one row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from berth_agent.core.iteration_rows import IterationRow

PREFIX = b"nccl_"
MEAN = "nccl_collective_exec_time_microseconds"
SUM = "nccl_collective_exec_time_sum_microseconds"
COUNT = "nccl_collective_count"
LINE = re.compile(r"(nccl_\w+)\{(.*)\}\s+(\S+)(?:\s+\d+)?")
LABEL = re.compile(r'\b(\w+)="((?:[^"\\]|\\.)*)"')
LONGEST_LINE = 2048
MOST_BYTES = 128 * 1024
MOST_OPERATIONS = 256
LONGEST_NUMBER = 18
"""Digits of a number of collectives: longer ones are no counter of NCCL's, and no float."""
NUMBERED = "coll_sn"
OF_ONE = (NUMBERED, "timestamp", "percentile_samples")
"""Labels that differ between two files for the same operation."""
US = 1e6
LEAST_SPAN_S = 1.0
MOST_S = 1e6
MOST_COLLECTIVES = 1e9
LEAST_OWN_S = 1e-6

Operation = tuple[tuple[str, str], ...]


class Collectives(NamedTuple):
    """Collectives of one kind: how many and their s since the file before, or the newest one."""

    mean_s: float = 0.0
    sum_s: float | None = None
    times: float | None = None
    number: int | None = None
    """Of the newest one, in files of the first version."""


class InspectorFile(NamedTuple):
    """One file, and when it was written, s."""

    at_s: float
    operations: Mapping[Operation, Collectives]


def is_of_inspector(data: bytes) -> bool:
    """Return whether a file has the form of the inspector, and is no JSON."""
    return data.lstrip()[:1] == b"#" or data.lstrip().startswith(PREFIX)


def read_inspector(data: bytes, at_s: float) -> InspectorFile:
    """Return what a file says. Raises ValueError."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"a file of {len(data)} bytes; {MOST_BYTES} at most are read")
    operations: dict[Operation, Collectives] = {}
    lines = (line.strip() for line in data.decode().splitlines() if len(line) <= LONGEST_LINE)
    for name, labels, value in (
        match.groups() for line in lines if (match := LINE.fullmatch(line))
    ):
        fields: dict[str, str] = dict(LABEL.findall(labels))
        number = fields.get(NUMBERED)
        if number is not None and len(number) > LONGEST_NUMBER:
            raise ValueError(f"{NUMBERED}: {len(number)} digits; {LONGEST_NUMBER} at most are read")
        operation = tuple(sorted((n, v) for n, v in fields.items() if n not in OF_ONE))
        known = operations.get(operation, Collectives())
        if name == MEAN:
            known = known._replace(
                mean_s=float(value) / US, number=None if number is None else int(number)
            )
        elif name == SUM:
            known = known._replace(sum_s=float(value) / US)
        elif name == COUNT:
            known = known._replace(times=float(value))
        else:
            continue
        operations[operation] = known
        if len(operations) > MOST_OPERATIONS:
            raise ValueError(f"more than {MOST_OPERATIONS} kinds of collectives; no more are read")
    if not operations:
        raise ValueError(f"no {MEAN}: not of the form of its tool")
    return InspectorFile(at_s, operations)


def row_between(before: InspectorFile, now: InspectorFile, step: int) -> IterationRow:
    """Return the mean times of a collective between two files. Raises ValueError."""
    span_s = now.at_s - before.at_s
    if not LEAST_SPAN_S <= span_s <= MOST_S:
        raise ValueError(f"{span_s:g} s between two files; {LEAST_SPAN_S:g} to {MOST_S:g} are read")
    count = waited_s = 0.0
    for operation, own in now.operations.items():
        number, in_them_s = _since(before.operations.get(operation), own)
        count, waited_s = count + number, waited_s + in_them_s
    is_plausible = 1 <= count <= MOST_COLLECTIVES and 0 <= waited_s < span_s
    if not is_plausible or (own_s := (span_s - waited_s) / count) < LEAST_OWN_S:
        raise ValueError(
            f"{count:g} collectives of {waited_s:g} s in {span_s:g} s; one at least, and time"
            " between them, are required"
        )
    return IterationRow(step, span_s / count, own_s, waited_s / count)


def _since(before: Collectives | None, now: Collectives) -> tuple[float, float]:
    """Return how many collectives of a kind there were since the file before, and their s."""
    if now.times is not None and now.sum_s is not None:
        return now.times, now.sum_s
    if now.number is None:
        raise ValueError("no number of collectives: a newer inspector, or one that has coll_sn")
    number = 0 if before is None or before.number is None else now.number - before.number
    return float(max(0, number)), max(0, number) * now.mean_s
