"""A what-if as one JSON document: times in ms, durations in cluster seconds, unknown is null."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from simulator.recorded.reading import ShadowRecord
from simulator.recorded.slice import RecordedSlice
from simulator.recorded.what_if import WhatIf

Json = dict[str, Any]


def document_of(
    part: RecordedSlice,
    done: WhatIf,
    shadows: Sequence[ShadowRecord],
    left_out_policies: Mapping[str, str],
) -> Json:
    """Return everything that a what-if says."""
    past = part.past
    document = {
        "pool": past.name,
        "from_at": past.from_ms,
        "to_at": past.to_ms,
        "begin_at": past.begin_ms,
        "time_scale": past.time_scale,
        "mean_gpus": part.mean_gpus,
        "jobs": {
            "counted": int(part.counted.sum()),
            "replayed": len(part.jobs),
            "carried": part.carried,
            "cut_short": part.cut_short,
            "retried": part.retried,
            "left_out": part.left_out,
        },
        "policy_changes": past.policy_changes,
        "fidelity": asdict(done.fidelity),
        "rows": [asdict(row) for row in done.rows],
        "shadows": [
            {
                "policy": one.policy,
                "orders": one.orders,
                "agreement": one.agreement,
                "refused": one.refused,
            }
            for one in shadows
        ],
        "left_out": dict(left_out_policies),
    }
    plain: Json = _plain(document)
    return plain


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; NaN and infinities are null."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
