"""The history of an LLM request in words, with its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cli.text.times import age_ms, clock, span

Request = Mapping[str, object]

OUTCOMES = {
    "completed": "answered completely",
    "cancelled": "its client left before the answer was complete",
    "failed": "its engine failed",
    "lost": "the proxy that relayed it died; its whole reservation was charged",
}
REASONS = {
    "queue_full": "as many requests of its tenant wait as the endpoint allows (queue_limit)",
    "queue_timeout": "it waited as long as the endpoint allows (queue_timeout_s)",
    "too_large": "it needs more tokens than the endpoint's batch may hold (batch_tokens)",
    "above_budget": "it may use more than a whole budget of the endpoint holds",
    "request_rate": "its tenant sent as many requests in a minute as the endpoint allows",
    "tenant_rate": "its tenant sends too much while the engines are overloaded",
    "application_rate": "its application sends too much while the engines are overloaded",
    "service_share": "its tenant has had more than its share while the engines are overloaded",
    "not_allowed": "its tenant may not use the endpoint",
    "unknown_endpoint": "no endpoint has that name",
    "unknown_tenant": "its tenant is not registered, or retired",
    "request_id_taken": "another request had the same id",
    "upstream_unavailable": "no engine of the endpoint could serve for as long as clients wait "
    "(away_timeout_s); `berth endpoints show` has each",
    "endpoint_drained": "the endpoint is drained",
    "endpoint_deleted": "the endpoint was deleted",
    "cancelled": "its client left while it waited",
    "lost": "the proxy that held it died while it waited",
}
"""Reasons of rejections in words."""
BUDGETS = {
    f"{holder}_{unit}": f"the budget of its {holder} in {unit} is spent; `berth llm limits` "
    "shows what is left"
    for holder in ("tenant", "user", "application", "model")
    for unit in ("requests", "tokens", "money")
}


def reason_words(reason: str) -> str:
    """Return a reason of a rejection in words, that of a later release as it is."""
    return REASONS.get(reason) or BUDGETS.get(reason) or reason.replace("_", " ")


def request_lines(request: Request) -> Iterator[str]:
    """Yield a line per step of a request, in the order of their times."""
    if request["endpoint"]:
        yield _arrival(request)
    if request["started_at"]:
        yield _start(request)
    match request["state"]:
        case "queued":
            yield f"has waited for {span(age_ms(int(str(request['queued_at']))))}"
        case "running":
            yield f"has run for {span(age_ms(int(str(request['started_at']))))}"
        case "finished":
            yield _end(request)
            yield _charge(request)
        case _:
            yield _rejection(request)


def _arrival(request: Request) -> str:
    named = f" as {request['model']}" if request["model"] else ""
    call = f", call {int(str(request['stage'])) + 1} of its interaction" if request["stage"] else ""
    return (
        f"{clock(request['queued_at'])}  queued at {request['endpoint']}{named} behind "
        f"{request['ahead']} requests{call}: {request['prompt_tokens']} prompt tokens, at most "
        f"{request['max_output_tokens']} output tokens, estimated wait {_seconds(request)}"
    )


def _seconds(request: Request) -> str:
    wait_s = request["wait_s"]
    return "unknown" if wait_s is None else span(1000 * float(str(wait_s)))


def _start(request: Request) -> str:
    waited = f"{span(request['waited_ms'])} after an estimate of {_seconds(request)}"
    return f"{clock(request['started_at'])}  started: it had waited {waited}"


def _end(request: Request) -> str:
    outcome = OUTCOMES.get(str(request["outcome"]), str(request["outcome"]))
    engine = f" by upstream {request['upstream']}" if request["upstream"] else ""
    why = f" ({request['reason']})" if request["reason"] else ""
    return (
        f"{clock(request['ended_at'])}  {outcome}{why}, after {span(request['served_ms'])}{engine}"
    )


def _charge(request: Request) -> str:
    return (
        f"charged: {request['prompt_tokens']} prompt tokens ({request['cached_tokens']} of them "
        f"cached by the engine), {request['output_tokens']} output tokens, "
        f"cost {float(str(request['cost'])):g}"
    )


def _rejection(request: Request) -> str:
    reason = str(request["reason"])
    detail = f" ({request['detail']})" if request["detail"] else ""
    retry = request["retry_after_s"]
    hint = f"; a retry may succeed after {retry:g} s" if isinstance(retry, int | float) else ""
    words = f"{reason_words(reason)}{detail}{hint}"
    return f"{clock(request['ended_at'])}  rejected, {reason}: {words}"
