"""Adapters of the benchmark: a grid of rates, ranks and counts, and clients of a real service."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from simulator.llm.adapters.engines import ENGINES, RANKS, AdapterEngine
from simulator.llm.adapters.loads import AdapterLoad

COUNTS = (16, 32, 64, 128, 192, 256, 320, 384)
RATES = (1.6, 0.8, 0.4, 0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125)
LENGTHS = ((223, 196), (1155, 211))
"""Mean tokens of ShareGPT's requests and of Azure's conversations of 2023."""
MODELS = {"m-small": 129_600, "m-mid": 129_600, "deepseek-r1": 43_200}
"""Models of ServeGen, and the start of the window of 10 minutes that is taken, s."""
TOTAL_PER_S, MOST_OUTPUT_PER_S = 100.0, 1000.0
"""Rates of a real service are scaled to so many requests per s in all, and cut at so many output
tokens per s of one client: above that it needs engines of its own."""
MOST_TOKENS = 8000
"""Mean tokens of a request above which a client is left out: few fit one engine."""


@dataclass(frozen=True, slots=True)
class AdapterScenario:
    name: str
    engine: AdapterEngine
    loads: tuple[AdapterLoad, ...]

    @property
    def rate_per_s(self) -> float:
        return sum(load.rate_per_s for load in self.loads)


def grid(seeds: int) -> Iterator[AdapterScenario]:
    """Yield a scenario per count and seed: three of the rates, ranks up to one of three."""
    for seed in range(seeds):
        for count in COUNTS:
            draw = random.Random(f"{seed} {count}")
            engine = ENGINES[draw.choice(sorted(ENGINES))]
            rates, most = draw.sample(RATES, 3), draw.choice(RANKS)
            prompt, output = draw.choice(LENGTHS)
            ranks = [rank for rank in RANKS if rank <= most]
            loads = (
                AdapterLoad(f"a{n:03d}", draw.choice(ranks), draw.choice(rates), prompt, output)
                for n in range(count)
            )
            yield AdapterScenario(f"{count} adapters, {seed}", engine, tuple(loads))


def servegen(folder: Path | None) -> Iterator[AdapterScenario]:
    """Yield a scenario per model of ServeGen: its clients with their shares, lengths and CVs.

    Yields nothing where the traces are absent.
    """
    if folder is None:
        return
    rates, tokens = (folder / f"servegen_client_{name}.parquet" for name in ("rates", "tokens"))
    if not (rates.exists() and tokens.exists()):
        return
    means: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for row in pq.read_table(tokens).to_pylist():
        means[row["model"], row["client"]].setdefault(row["field"], row["mean"])
    for model, window_s in MODELS.items():
        rows = pq.read_table(rates, filters=[("window_s", "=", window_s)]).to_pylist()
        clients = [
            _client(row, means[model, row["client"]])
            for row in rows
            if row["model"] == model and row["rate"] > 0 and means.get((model, row["client"]))
        ]
        clients = [c for c in clients if c.prompt_tokens + c.output_tokens <= MOST_TOKENS]
        total = sum(load.rate_per_s for load in clients)
        loads = (
            replace(load, rate_per_s=_rate_per_s(load, TOTAL_PER_S / total)) for load in clients
        )
        yield AdapterScenario(f"ServeGen {model}", ENGINES["llama-3.1-8b"], tuple(loads))


def _rate_per_s(load: AdapterLoad, scale: float) -> float:
    return min(load.rate_per_s * scale, MOST_OUTPUT_PER_S / load.output_tokens)


def _client(row: dict[str, float], means: dict[str, float]) -> AdapterLoad:
    rank = random.Random(row["client"]).choice(RANKS)
    cv = min(max(row["cv"], 0.5), 5.0)
    prompt, output = (max(1.0, means[name]) for name in ("input_tokens", "output_tokens"))
    return AdapterLoad(f"c{row['client']}", rank, row["rate"], prompt, output, cv)
