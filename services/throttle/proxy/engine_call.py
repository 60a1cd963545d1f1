"""The call of an engine for a request, and the answers that stand for its failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Raw, json

from services.throttle.relay.assemble import MalformedStream
from services.throttle.relay.client_stream import BrokenStream
from services.throttle.relay.errors import ErrorAnswer, refuse
from services.throttle.relay.request import LIMIT_FIELDS, RequestBody
from services.throttle.relay.sse import EventTooLarge
from services.throttle.relay.usage import TokenCount
from services.throttle.upstreams.calls import UpstreamBroken, UpstreamCall, UpstreamsFailed
from shared.contracts.endpoints import EndpointConfigured

FIRST_BYTE_S = 600.0
IDLE_S = 120.0
BROKEN = (UpstreamBroken, BrokenStream, EventTooLarge, MalformedStream)
"""Errors of an answer that breaks off, or that cannot be read."""


def engine_call(
    body: RequestBody,
    endpoint: EndpointConfigured,
    headers: Mapping[str, str],
    prefix: tuple[str, ...],
    limit: int | None = None,
) -> UpstreamCall:
    """Return the call of an engine; `limit` is that of a body without one."""
    return UpstreamCall(
        f"/v1/{body.route}",
        engine_fields(body, endpoint, limit or endpoint.output_limit),
        headers,
        FIRST_BYTE_S,
        IDLE_S,
        prefix[-1] if prefix else "",
    )


def engine_fields(
    body: RequestBody, endpoint: EndpointConfigured, limit: int
) -> Mapping[str, object]:
    """Return the body for the engine: streamed, with a limit, and the engine's name of the model.

    `limit` is that of a body without one; a limit under the name of another route is repeated under
    that of this one.

    All other fields are those of the client, byte for byte.
    """
    fields: dict[str, object] = dict(body.with_stream())
    if body.model not in endpoint.adapters and body.model != endpoint.endpoint:
        fields["model"] = endpoint.endpoint
    names = LIMIT_FIELDS[body.route]
    if names and not body.sends_limit:
        for name in names:
            fields.pop(name, None)
        fields[names[-1]] = Raw(json.encode(body.limit or limit))
    return fields


def answer_count(
    body: RequestBody,
    output_limit: int,
    prompt_limit: int | None,
    tokens_of: Callable[[int], int] = lambda _: 0,
) -> TokenCount:
    """Return the count of an answer; a usage beyond what the request may have is not believed.

    `tokens_of` estimates the tokens of so many bytes of text.
    """
    return TokenCount(
        body.route,
        answers=body.answers,
        output_limit=output_limit or None,
        prompt_limit=prompt_limit,
        tokens_of=tokens_of,
    )


def failed_answer(failed: UpstreamsFailed, headers: Mapping[str, str]) -> ErrorAnswer:
    """Return the answer where no engine gave one; the engine's own text is its client's."""
    reason = {"no_upstream": "upstream_unavailable", "upstream_busy": "upstream_unavailable"}.get(
        failed.code, failed.code
    )
    text = failed.engine_text or failed.text
    return refuse(reason, text, retry_after_s=failed.retry_after_s, headers=headers)


def broken_answer(error: Exception, headers: Mapping[str, str]) -> ErrorAnswer:
    """Return the answer where that of the engine broke off."""
    text = error.reason if isinstance(error, UpstreamBroken) else str(error)
    return refuse("upstream_failed", f"engine: {text}", headers=headers)
