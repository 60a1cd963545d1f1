from __future__ import annotations

from tests.services.throttle.core.disciplines.serving import a_request


def test_tokens_held_and_remaining_follow_the_output() -> None:
    request = a_request(prompt=10, limit=4)
    request.made_tokens = 3
    assert (request.held_tokens, request.remaining_tokens) == (13, 1)
    request.made_tokens = 6
    assert request.remaining_tokens == 0, "an engine may pass the limit"
