"""Delays of the other tenants when two send many times as much, by single calls or agents."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Literal

from services.throttle.core.disciplines.catalog import DISCIPLINES
from services.throttle.core.disciplines.limits import Limits
from simulator.llm.abuse import LIMITS as ENGINE
from simulator.llm.abuse import AbuseLoad, is_abuser
from simulator.llm.measures import measure, percentile
from simulator.llm.study import Study

Kind = Literal["single", "agent"]
CELLS: tuple[tuple[str, Kind, int], ...] = (
    ("single_x8", "single", 8),
    ("single_x16", "single", 16),
    ("agent_x8", "agent", 8),
    ("agent_x16", "agent", 16),
)
LIMITS = Limits(tenant_per_minute=12, application_per_minute=400, throttles=True)

Row = dict[str, float]


def abuse_row(policy: str, kind: Kind, times: int, per_s: float, seeds: Sequence[int]) -> Row:
    """Return means over the seeds; interactions cut and tokens wasted are sums."""
    cut_midway, wasted_tokens, refused, benign_refused, tokens_per_s = 0, 0, 0, 0, 0.0
    p99s: list[float] = []
    for seed in seeds:
        load = AbuseLoad(kind, times, seed, per_s)
        study = Study(DISCIPLINES[policy](LIMITS), ENGINE, load.follow)
        outcomes = study.run(load.first_calls())
        measures = measure(outcomes)
        cut_midway += measures.cut_midway
        wasted_tokens += measures.wasted_tokens
        refused += measures.refused
        tokens_per_s += measures.tokens_per_s / len(seeds)
        benign = [o for o in outcomes if not is_abuser(o.request.tenant)]
        benign_refused += sum(outcome.refused for outcome in benign)
        p99s.append(percentile([o.queued_s for o in benign if not o.refused], 99))
    return {
        "cut_midway": cut_midway,
        "wasted_tokens": wasted_tokens,
        "benign_p99_s": round(fmean(p99s), 2),
        "refused": refused,
        "benign_refused": benign_refused,
        "tokens_per_s": round(tokens_per_s, 1),
    }
