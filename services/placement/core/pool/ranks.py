"""The order of jobs that priority recommends, as placement recorded it last."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Ranks:
    """The last order from priority; jobs that are not known yet keep their place in it."""

    at: int = 0
    policy: str = ""
    model: str = ""
    """sha256 of the learned policy; empty: the base decided."""
    scores: dict[str, float] = field(default_factory=dict)
    """By job id: of waiting jobs, and where rank may stop jobs of those on GPUs as well."""
    gittins_s: dict[str, float] = field(default_factory=dict)
    """By job id: Gittins rank of jobs on GPUs in cluster seconds, where stops have a price."""
    run_s: dict[str, float] = field(default_factory=dict)
    """By job id: predicted run time of waiting jobs in cluster s, where EASY backfills by it."""
