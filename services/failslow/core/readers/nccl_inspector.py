"""The Prometheus text file of NCCL's inspector plugin (`NCCL_INSPECTOR_PROM_DUMP=1`).

A collective lasts on a rank from its own arrival until the last one has come, so the rank for which
the others wait has the shortest times: that one is slow by its own work. Where all are long alike,
and their bandwidth is low, it is the network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from statistics import median
from typing import NamedTuple

EXEC_TIME = "nccl_collective_exec_time_microseconds"
LINE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+\S+)?")
LABEL = re.compile(r'\s*([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"\s*,?')
ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
OF_RANK = ("rank", "node", "hostname", "gpu", "gpu_device_id", "pid", "timestamp", "coll_sn")
"""Labels that differ between the ranks of one operation."""
US = 1e6


class Sample(NamedTuple):
    """One value, with its labels."""

    name: str
    labels: dict[str, str]
    value: float

    @property
    def gpu(self) -> str:
        """The GPU, by its node and number; by the rank in files of earlier versions."""
        labels = self.labels
        node = labels.get("node") or labels.get("hostname") or ""
        gpu = labels.get("gpu") or labels.get("gpu_device_id") or f"rank {labels.get('rank', '?')}"
        return f"{node}/{gpu}"

    @property
    def operation(self) -> tuple[tuple[str, str], ...]:
        """The communicator, collective and size: what the ranks of one operation share."""
        return tuple(sorted((n, v) for n, v in self.labels.items() if n not in OF_RANK))


def read_samples(text: str) -> list[Sample]:
    """Return the samples of a file. Raises ValueError."""
    lines = [(line.strip(), number) for number, line in enumerate(text.splitlines(), start=1)]
    return [_sample(line, number) for line, number in lines if line and line[0] != "#"]


def waits_s(samples: Iterable[Sample]) -> dict[str, float]:
    """Return the s of a collective on each GPU, relative to others of the same operation.

    It is the median over the operations that several GPUs report, scaled by that of all GPUs.
    """
    by_operation: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for sample in samples:
        if sample.name == EXEC_TIME:
            by_operation.setdefault(sample.operation, {})[sample.gpu] = sample.value / US
    shared = [times for times in by_operation.values() if len(times) > 1]
    ratios: dict[str, list[float]] = {}
    for times in shared:
        middle_s = median(times.values()) or 1.0
        for gpu, seconds in times.items():
            ratios.setdefault(gpu, []).append(seconds / middle_s)
    usual_s = median(time for times in shared for time in times.values()) if shared else 0.0
    return {gpu: usual_s * median(values) for gpu, values in sorted(ratios.items())}


def awaited(waits: Mapping[str, float], share: float = 0.5) -> list[str]:
    """Return the GPUs that wait for less than this share of what the others do: all wait for them.

    A minority at most; where many are below there is no majority to compare with.
    """
    usual_s = median(waits.values()) if waits else 0.0
    short = [gpu for gpu, seconds in waits.items() if seconds < share * usual_s]
    return short if 2 * len(short) < len(waits) else []


def _sample(line: str, number: int) -> Sample:
    match = LINE.fullmatch(line)
    try:
        if match is None:
            raise ValueError("not `name{labels} value`")
        return Sample(match["name"], _labels(match["labels"] or ""), float(match["value"]))
    except ValueError as error:
        raise ValueError(f"NCCL inspector: line {number}: {error}: {line[:80]!r}") from None


def _labels(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = LABEL.match(text, place)
        if match is None:
            raise ValueError("labels cannot be read")
        unescaped = re.sub(r'\\[n"\\]', lambda escape: ESCAPES[escape[0]], match[2])
        labels[match[1]], place = unescaped, match.end()
    return labels
