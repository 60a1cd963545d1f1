"""Turns each record of a `requests.<tenant>` topic into exactly one command: pure and total."""

from __future__ import annotations

from services.gateway.core.field_errors import InvalidBody, NotJson
from services.gateway.core.llm_submission import MOST_BODY_BYTES, LlmSubmission, serve_request
from services.gateway.core.strict import parse_body, parse_object
from services.gateway.core.submission import Sender, TenantMismatch
from services.gateway.kafka.inbound import RoutedCommand, SubmissionRecord, decoded, rejected
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.identity import derive_command_id
from shared.contracts.llm import ServeLlmRequest
from shared.contracts.registry import AccessView
from shared.ledger.cloudevents import Malformed

PREFIX = "requests."
TOPIC = "llm.requests"
SERVE = frozenset({"llm.serve", ServeLlmRequest.TYPE})


def route_request(record: SubmissionRecord, sender: Sender, access: AccessView) -> RoutedCommand:
    """Return the command of the record; for an invalid one a RejectSubmission with the reason.

    A request to an endpoint that does not exist goes to the first lane, where the throttle refuses
    it with an answer to its sender.
    """
    id = derive_command_id(record.topic, record.partition, record.offset)
    try:
        if not access.is_active(sender.tenant):
            raise Malformed("tenant: not registered or retired")
        event = decoded(record, MOST_BODY_BYTES)
        if event.tenant and event.tenant != sender.tenant:
            raise TenantMismatch(event.tenant)
        if event.type not in SERVE:
            raise Malformed(f"type: unknown; it must be {ServeLlmRequest.TYPE}")
        submission = parse_body(LlmSubmission, parse_object(event.body))
        endpoint = access.endpoint(submission.endpoint)
        command = serve_request(submission, sender, endpoint)
        return RoutedCommand(
            id, command, lane_of(endpoint), command.request_id, "", event.traceparent, TOPIC
        )
    except (Malformed, NotJson, InvalidBody, TenantMismatch) as error:
        pools = {pool: settings.partition for pool, settings in access.pools.items()}
        return rejected(id, record, sender, pools, str(error))


def lane_of(endpoint: EndpointConfigured | None) -> int:
    return 0 if endpoint is None else endpoint.partition
