"""An LLM request becomes the command of its sender's tenant."""

from __future__ import annotations

from typing import Any

import pytest

from services.gateway.core.field_errors import InvalidBody
from services.gateway.core.llm_submission import LlmSubmission, serve_request
from services.gateway.core.submission import Sender, TenantMismatch
from shared.contracts.endpoints import EndpointConfigured

ADA = Sender("ada", "main")
CHAT = EndpointConfigured(endpoint="org/Chat", partition=3, aliases=("chat",))


def submission(**fields: Any) -> LlmSubmission:
    return LlmSubmission.model_validate({"request_id": "r", "endpoint": "chat", **fields})


def test_the_endpoint_is_named_and_the_model_that_was_asked_for() -> None:
    command = serve_request(submission(user="u"), ADA, CHAT)
    assert (command.tenant, command.endpoint, command.model) == ("ada", "org/Chat", "chat")
    assert command.user == "u"
    assert serve_request(submission(endpoint="org/Chat"), ADA, CHAT).model is None


def test_without_an_endpoint_the_name_stays() -> None:
    command = serve_request(submission(), ADA, None)
    assert (command.endpoint, command.model) == ("chat", None)


def test_no_request_is_of_another_tenant() -> None:
    with pytest.raises(TenantMismatch):
        serve_request(submission(tenant="bob"), ADA, CHAT)


def test_the_model_of_the_body_is_the_one_that_is_named() -> None:
    for body in ({"model": "chat"}, {}):
        assert serve_request(submission(body=body), ADA, CHAT).body == {"model": "chat"}
    assert serve_request(submission(), ADA, CHAT).body is None
    with pytest.raises(InvalidBody, match="must be the model"):
        serve_request(submission(body={"model": "other"}), ADA, CHAT)
