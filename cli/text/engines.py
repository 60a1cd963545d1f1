"""Puts the state of the engines of an LLM endpoint into words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from cli.text.times import age_ms, span

Row = Mapping[str, object]

ENGINE_HEADS = ("ENGINE", "STATE", "SINCE", "IN FLIGHT", "WAITING", "KV USED")


def engines_of(endpoint: Row) -> list[Row]:
    return cast("list[Row]", endpoint.get("engines") or [])


def serving_text(endpoint: Row) -> str:
    """Return how many of the engines get requests."""
    engines = engines_of(endpoint)
    return f"{sum(bool(engine['available']) for engine in engines)} of {len(engines)}"


def engine_cells(endpoint: Row) -> Iterator[tuple[object, ...]]:
    """Yield the cells of each engine; a load that it does not report, or that a tenant does not
    see, is empty."""
    for engine in engines_of(endpoint):
        kv_ratio = engine.get("kv_ratio")
        used = f"{100 * kv_ratio:.0f}%" if isinstance(kv_ratio, int | float) else None
        since = span(age_ms(int(str(engine["since"]))))
        loads = (engine.get("in_flight"), engine.get("waiting"), used)
        yield (engine["name"], state_text(engine), since, *loads)


def state_text(engine: Row) -> str:
    return "serving" if engine["available"] else f"away: {engine['reason'] or 'unknown'}"


def away_text(endpoint: Row) -> str:
    """Return why no engine of the endpoint can serve; empty if one can, or if none is known."""
    engines = engines_of(endpoint)
    if not engines or any(engine["available"] for engine in engines):
        return ""
    texts = (
        f"{engine['name']}: {engine['reason']} for {span(age_ms(int(str(engine['since']))))}"
        for engine in engines
    )
    return f"no engine of {endpoint['endpoint']} can serve: {'; '.join(texts)}"
