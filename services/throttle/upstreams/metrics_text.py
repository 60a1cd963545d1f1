"""The load of an engine, read from its Prometheus text under the names of several engines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite

from prometheus_client.parser import text_string_to_metric_families

RUNNING = (
    "vllm:num_requests_running",
    "sglang:num_running_reqs",
    "llamacpp:requests_processing",
    "tgi_batch_current_size",
)
WAITING = (
    "vllm:num_requests_waiting",
    "vllm:num_requests_waiting_by_reason",
    "sglang:num_queue_reqs",
    "llamacpp:requests_deferred",
    "tgi_queue_size",
)
KV_RATIO = (
    "vllm:kv_cache_usage_perc",
    "vllm:gpu_cache_usage_perc",
    "sglang:token_usage",
    "llamacpp:kv_cache_usage_ratio",
)
"""Names of one figure, newest first; the first that the text has counts."""
SAMPLE = re.compile(
    rf"^({'|'.join(map(re.escape, (*RUNNING, *WAITING, *KV_RATIO)))})(?=[{{ \t]).*$", re.MULTILINE
)
MOST = 1e9


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """The load of an engine, summed over its replicas and models; None is unknown, never 0."""

    running: int | None = None
    waiting: int | None = None
    kv_ratio: float | None = None
    """The part of the KV cache that is held, 0 to 1, in the fullest replica."""


UNKNOWN = EngineFigures()


def parse_figures(text: str) -> EngineFigures:
    """Return the load; a figure that is missing or malformed in any of its samples is unknown."""
    lines: dict[str, list[str]] = {}
    for match in SAMPLE.finditer(text):
        lines.setdefault(match[1], []).append(match[0])
    kv_ratio = _figure(lines, KV_RATIO, max, 1.0)
    return EngineFigures(
        _whole(_figure(lines, RUNNING, sum, MOST)),
        _whole(_figure(lines, WAITING, sum, MOST)),
        kv_ratio,
    )


def _figure(
    lines: dict[str, list[str]],
    names: tuple[str, ...],
    combine: Callable[[Iterable[float]], float],
    most: float,
) -> float | None:
    name = next((name for name in names if name in lines), None)
    if name is None:
        return None
    values = _values(lines[name])
    if not values or not all(isfinite(value) and 0 <= value <= most for value in values):
        return None
    return combine(values)


def _values(lines: list[str]) -> list[float]:
    """Return the values of samples; none if one of them is malformed."""
    try:
        families = list(text_string_to_metric_families("\n".join(lines) + "\n"))
    except (ValueError, IndexError, KeyError):
        return []
    return [sample.value for family in families for sample in family.samples]


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
