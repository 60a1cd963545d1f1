"""Turns an LLM request, by REST or by Kafka, into the command that the throttle reads."""

from __future__ import annotations

from pydantic import Field

from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.submission import Sender, check_tenant
from shared.contracts.base import Model, Name
from shared.contracts.endpoints import EndpointConfigured, ModelName
from shared.contracts.llm import ApiRoute, Label, ServeLlmRequest

MOST_BODY_BYTES = 768 * 1024
"""A record of `llm.requests` holds a request with all its envelope."""


class LlmSubmission(Model):
    """An LLM request of an application."""

    request_id: str = Field(
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z0-9._:-]+$",
        description="id chosen by the sender",
    )
    tenant: Name | None = Field(None, description="tenant; must be the sender's own")
    endpoint: ModelName = Field(description="model: an endpoint, an alias or an adapter")
    application: Name = Field("default", description="application of the tenant")
    user: Label = Field("", description="user of the application, for budgets")
    interaction: str = Field("", max_length=64, description="conversation of the request")
    prompt_tokens: int = Field(
        0, ge=0, le=10_000_000, description="tokens of the prompt; the body is counted anyway"
    )
    max_output_tokens: int = Field(
        0, ge=0, le=10_000_000, description="maximum tokens of the answer; 0: the body's"
    )
    body: dict[str, object] | None = Field(
        None, description="an OpenAI request; its answer goes to the topic answers.<tenant>"
    )
    route: ApiRoute = Field("chat/completions", description="route of the OpenAI API for the body")


def serve_request(
    submission: LlmSubmission, sender: Sender, endpoint: EndpointConfigured | None
) -> ServeLlmRequest:
    """Return the command with the sender's tenant; without an endpoint the throttle refuses it.

    A body that names no model gets that of the submission. Raises TenantMismatch, and InvalidBody
    for a body that names another one.
    """
    check_tenant(submission.tenant, sender)
    check_model(submission)
    name = submission.endpoint if endpoint is None else endpoint.endpoint
    model = submission.endpoint if submission.endpoint != name else None
    named = {"tenant": sender.tenant, "endpoint": name, "model": model}
    body = None if submission.body is None else {"model": submission.endpoint, **submission.body}
    return ServeLlmRequest(**{**submission.model_dump(), **named, "body": body})


def check_model(submission: LlmSubmission) -> None:
    model = (submission.body or {}).get("model", submission.endpoint)
    if model != submission.endpoint:
        rule = "must be the model that `endpoint` names"
        raise InvalidBody([FieldError(field="body.model", value=str(model)[:128], rule=rule)])
