"""The event that ends a waiting request."""

from __future__ import annotations

from services.throttle.core.state import EndpointState, OpenRequest
from shared.contracts.llm import LlmRequestRejected


def reject_waiting(
    state: EndpointState,
    request: OpenRequest,
    reason: str,
    detail: str,
    retry_after_s: float | None = None,
) -> LlmRequestRejected:
    """Return the rejection, with what the request was sent to and for whom."""
    served = request.served
    endpoint = state.last_endpoint.endpoint if state.last_endpoint else ""
    return LlmRequestRejected(
        request_id=request.request_id,
        tenant=request.tenant,
        reason=reason,
        detail=detail,
        retry_after_s=retry_after_s,
        endpoint=endpoint,
        application=served.application,
        user=served.user,
        model=served.model if served.model != endpoint else "",
    )
