"""Goals of the proxy's overhead, and whether the figures of a run meet them."""

from __future__ import annotations

from typing import Any

from benchmarks.parts.goals import met

MOST_OF_BARE = 2.5
LEAST_OF_LITELLM = 10.0
MOST_LAG_MS = 25.0
"""The first bucket of the metric above 20 ms."""
MOST_LEFT_MS, MOST_REVOKED_MS = 200.0, 5_000.0
KINDS = ("plain", "stream64")


def goals_of(result: dict[str, Any]) -> dict[str, str]:
    """Return each goal with `met`, `not met` or `not measured`, and its figures."""
    goals = [goal for kind in KINDS for goal in _goals_of_kind(result, kind)]
    return {**dict(goals), **_lag_goal(result.get("loop_lag")), **_prompt_goals(result)}


def _prompt_goals(result: dict[str, Any]) -> dict[str, str]:
    measured = result.get("promptness")
    if measured is None:
        return {}
    goals = {
        f"the engine is free at most {MOST_LEFT_MS:g} ms after a client left": (
            "left",
            MOST_LEFT_MS,
        ),
        f"a revoked key is refused after at most {MOST_REVOKED_MS / 1000:g} s": (
            "revoked",
            MOST_REVOKED_MS,
        ),
    }
    return {
        name: f"{met(measured[row]['most_ms'] <= most_ms)}: {measured[row]['most_ms']:g} ms at most"
        for name, (row, most_ms) in goals.items()
    }


def _lag_goal(lag: dict[str, dict[str, float]] | None) -> dict[str, str]:
    if lag is None:
        return {}
    name = f"largest bodies: 99 % of looks at the event loop are at most {MOST_LAG_MS:g} ms late"
    largest, small = lag["largest"]["p99_ms"], lag["small"]["p99_ms"]
    beside = f"at most {largest:g} ms; under small ones {small:g} ms"
    return {name: f"{met(largest <= MOST_LAG_MS)}: {beside}"}


def _goals_of_kind(result: dict[str, Any], kind: str) -> list[tuple[str, str]]:
    bare = result["ratios"]["aiohttp"][kind]
    holds = 0 < bare["median"] <= MOST_OF_BARE
    goals = [
        (
            f"{kind}: CPU per request at most {MOST_OF_BARE} times that of bare aiohttp",
            f"{met(holds)}: {_spread(bare)}",
        )
    ]
    name = f"{kind}: CPU per request at most a tenth of LiteLLM's"
    if result.get("litellm") is None:
        return [*goals, (name, f"not measured: {result['litellm_missing']}")]
    other = result["ratios"]["litellm"][kind]
    holds = other["median"] >= LEAST_OF_LITELLM
    return [*goals, (name, f"{met(holds)}: LiteLLM's is {_spread(other)} times Berth's")]


def _spread(ratio: dict[str, float]) -> str:
    return f"{ratio['median']:.2f} ({ratio['least']:.2f} to {ratio['most']:.2f} by round)"
