from __future__ import annotations

from services.throttle.core.decide import Throttle
from services.throttle.core.rejections import reject_waiting
from tests.harness.decider import run
from tests.services.throttle.llm import lane, local_request


def test_a_rejection_says_what_the_request_was_sent_to_and_for_whom() -> None:
    state = lane(capacity=0)
    request = local_request("r1", application="search", user="eve", model="chat-lora")
    run(Throttle(), state, [request, local_request("r2")])
    event = reject_waiting(state, state.waiting["r1"], "cancelled", "client: left", 2.0)
    assert (event.endpoint, event.application, event.user) == ("chat", "search", "eve")
    assert (event.model, event.retry_after_s) == ("chat-lora", 2.0)
    assert reject_waiting(state, state.waiting["r2"], "cancelled", "").model == ""
