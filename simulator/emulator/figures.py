"""The metrics of an emulated engine, under the names of vLLM, as Prometheus text."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LATENCY_S: tuple[float, ...] = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
TOKENS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0)
FINISH_REASONS = ("stop", "length", "abort")


class Histogram:
    """Counts of values by their bucket; the last counts those above all bounds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self._counts[bisect_left(self._bounds, value)] += times
        self._sum += value * times

    def lines(self, name: str, labels: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{labels},le="{bound}"}} {total}'
        yield f"{name}_sum{{{labels}}} {self._sum}"
        yield f"{name}_count{{{labels}}} {total}"


def _latency() -> Histogram:
    return Histogram(LATENCY_S)


def _tokens() -> Histogram:
    return Histogram(TOKENS)


@dataclass
class EngineFigures:
    """Counts of one engine since it started; durations are in wall seconds."""

    model: str
    index: int
    """The number of the engine, its label `engine`."""
    prompt_tokens: int = 0
    generation_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    finished: Counter[str] = field(default_factory=Counter)
    first_token: Histogram = field(default_factory=_latency)
    inter_token: Histogram = field(default_factory=_latency)
    end_to_end: Histogram = field(default_factory=_latency)
    queued: Histogram = field(default_factory=_latency)
    prompt_sizes: Histogram = field(default_factory=_tokens)
    answer_sizes: Histogram = field(default_factory=_tokens)

    @property
    def labels(self) -> str:
        name = self.model.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'engine="{self.index}",model_name="{name}"'

    def counters(self) -> dict[str, int]:
        return {
            "vllm:prefix_cache_queries_total": self.prefix_queries,
            "vllm:prefix_cache_hits_total": self.prefix_hits,
            "vllm:num_preemptions_total": 0,
            "vllm:prompt_tokens_total": self.prompt_tokens,
            "vllm:generation_tokens_total": self.generation_tokens,
        }

    def histograms(self) -> dict[str, Histogram]:
        return {
            "vllm:time_to_first_token_seconds": self.first_token,
            "vllm:inter_token_latency_seconds": self.inter_token,
            "vllm:e2e_request_latency_seconds": self.end_to_end,
            "vllm:request_queue_time_seconds": self.queued,
            "vllm:request_prompt_tokens": self.prompt_sizes,
            "vllm:request_generation_tokens": self.answer_sizes,
        }


@dataclass(frozen=True)
class EngineGauges:
    """The load of one engine now."""

    running: int
    waiting: int
    kv_usage: float
    """Part of the KV cache that is held, 0 to 1."""

    def values(self) -> dict[str, float]:
        return {
            "vllm:num_requests_running": float(self.running),
            "vllm:num_requests_waiting": float(self.waiting),
            "vllm:kv_cache_usage_perc": self.kv_usage,
        }


def exposition(engines: Iterable[tuple[EngineFigures, EngineGauges]]) -> str:
    """Return the metrics of all engines, each name with its type once."""
    rows: dict[tuple[str, str], list[str]] = {}
    for figures, gauges in engines:
        labels = figures.labels
        for name, value in gauges.values().items():
            rows.setdefault((name, "gauge"), []).append(f"{name}{{{labels}}} {value}")
        for name, count in figures.counters().items():
            rows.setdefault((name, "counter"), []).append(f"{name}{{{labels}}} {count}")
        name = "vllm:request_success_total"
        rows.setdefault((name, "counter"), []).extend(
            f'{name}{{{labels},finished_reason="{reason}"}} {figures.finished[reason]}'
            for reason in FINISH_REASONS
        )
        for name, histogram in figures.histograms().items():
            rows.setdefault((name, "histogram"), []).extend(histogram.lines(name, labels))
    lines = (
        line for (name, kind), values in rows.items() for line in (f"# TYPE {name} {kind}", *values)
    )
    return "\n".join(lines) + "\n"
