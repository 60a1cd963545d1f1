"""Constants of engines with LoRA adapters, and the rules of their memory and step times.

They were fitted by Agulló et al. (arXiv 2508.08343) to runs of vLLM 0.8.5 on one H100 with chunked
prefill, and hold for that engine, version and GPU alone. The sizes of the KV cache are a fit to
those that vLLM logged in the same runs, within 7 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SLOT_CHOICES = (8, 16, 32, 64, 96, 128, 160, 192, 256, 320, 384)
RANKS = (8, 16, 32)
BLOCK_TOKENS = 16
PROVENANCE = "vLLM 0.8.5 on one H100, fitted by Agulló et al. (arXiv 2508.08343)"


@dataclass(frozen=True, slots=True)
class AdapterEngine:
    """One base model on one GPU; times in ms, as the fits give them."""

    name: str
    request_ms: float
    """Time of a step per running request, without adapters."""
    step_ms: float
    adapter_percent: float
    """Slowdown of a step per distinct adapter that runs in it, in percent of its time."""
    lora_percent: float
    """Time of a step with LoRA enabled, in percent of that without."""
    load_ms: Mapping[int, Mapping[int, float]]
    """Time to load an adapter, by the highest rank of the engine and the adapter's."""
    kv_tokens: int
    """Tokens of the KV cache of an engine without adapter slots."""
    kv_per_slot_rank: float
    """Tokens of KV cache that a slot costs per unit of the engine's highest rank."""
    longest_tokens: int
    """`max_model_len`: vLLM does not start where the KV cache is smaller."""
    step_tokens: int = 2048
    """`max_num_batched_tokens` of a step: running requests, and prompts that are read."""
    batch_requests: int = 2048

    def cache_tokens(self, slots: int, max_rank: int) -> int:
        """Return the tokens of the KV cache beside so many slots of the rank."""
        return int(self.kv_tokens - self.kv_per_slot_rank * slots * max_rank)

    def starts(self, slots: int, max_rank: int) -> bool:
        """Return whether memory holds: the cache has room for a request of the longest length."""
        return self.cache_tokens(slots, max_rank) >= self.longest_tokens

    def step_s(self, requests: float, adapters: float) -> float:
        """Return the time of a step with so many requests of so many adapters."""
        slowdown = (self.adapter_percent * adapters + self.lora_percent) / 100
        return (self.request_ms * requests + self.step_ms) * slowdown / 1000

    def load_s(self, max_rank: int, rank: int) -> float:
        return self.load_ms[max_rank][rank] / 1000


def scheduling_s(requests: float, waiting: float, slots_per_adapter: float) -> float:
    """Return the time of vLLM's scheduler per step, a linear fit to scaled queue lengths."""
    skipped = waiting * slots_per_adapter
    return max(
        0.0,
        0.004373 * (requests - 0.232143) / 1081.139069
        + 0.004615 * waiting / 20309.088235
        - 0.004391 * skipped / 16371.311594
        - 0.0001964,
    )


ENGINES = {
    engine.name: engine
    for engine in (
        AdapterEngine(
            "llama-3.1-8b",
            request_ms=0.0437994,
            step_ms=10.54174836,
            adapter_percent=1.93011757,
            lora_percent=200.01448221,
            load_ms={8: {8: 6.61}, 16: {8: 7.77, 16: 6.38}, 32: {8: 8.08, 16: 7.87, 32: 6.37}},
            kv_tokens=307_158,
            kv_per_slot_rank=47.98,
            longest_tokens=131_072,
        ),
        AdapterEngine(
            "qwen2.5-7b",
            request_ms=0.04894489,
            step_ms=10.61679297,
            adapter_percent=1.66851571,
            lora_percent=177.69399315,
            load_ms={8: {8: 3.06}, 16: {8: 3.40, 16: 2.99}, 32: {8: 3.38, 16: 3.51, 32: 3.04}},
            kv_tokens=702_342,
            kv_per_slot_rank=88.04,
            longest_tokens=32_768,
        ),
    )
}
