"""A request is charged at its end: when it ended, was cut, or was served by no engine."""

from __future__ import annotations

from services.throttle.proxy.settlement import RequestSettlement
from services.throttle.relay.usage import EngineUsage, TokenCount
from services.throttle.tickets import STOPPED

WHOLE = 500


def counted(chunks: int, usage: EngineUsage | None = None) -> TokenCount:
    """The count of an answer of so many chunks, a token each; a usage is believed."""
    count = TokenCount("chat/completions", output_limit=WHOLE, prompt_limit=100)
    for _ in range(chunks):
        count.add_text(4)
    count.usage = usage
    return count


def test_an_answer_that_ended_is_charged_by_the_usage_of_the_engine() -> None:
    settlement = RequestSettlement(counted(3, EngineUsage(9, 5, 4)), "completed", "u1")
    end = settlement.report("r1")
    assert (end.outcome, end.upstream, end.output_tokens) == ("completed", "u1", 5)
    assert (end.prompt_tokens, end.cached_tokens) == (9, 4)


def test_a_client_that_leaves_is_charged_what_was_made() -> None:
    assert RequestSettlement(counted(3)).report("r1").output_tokens == 3


def test_a_client_that_leaves_an_answer_without_a_stream_is_charged_the_whole_reservation() -> None:
    left = RequestSettlement(counted(3), whole_tokens=WHOLE)
    assert left.report("r1").output_tokens == WHOLE
    ended = RequestSettlement(counted(3), "completed", whole_tokens=WHOLE)
    assert ended.report("r1").output_tokens == 3


def test_a_request_that_no_engine_served_is_charged_nothing() -> None:
    end = RequestSettlement(counted(3), "failed", reason="no_upstream", is_refused=True).report("r")
    assert (end.output_tokens, end.prompt_tokens, end.reason) == (0, 0, "no_upstream")


def test_a_request_that_a_stop_cuts_off_is_charged_as_if_its_client_left() -> None:
    cut = RequestSettlement(counted(3), "completed", "u1", whole_tokens=WHOLE).report_cut("r1")
    assert (cut.outcome, cut.reason, cut.output_tokens) == ("failed", STOPPED, WHOLE)


def test_an_engine_that_has_not_answered_at_a_stop_may_have_begun() -> None:
    sent = RequestSettlement(counted(0), is_refused=True, whole_tokens=WHOLE)
    assert sent.report_cut("r1").output_tokens == WHOLE
    refused = RequestSettlement(counted(0), upstream="u1", is_refused=True, whole_tokens=WHOLE)
    assert refused.report_cut("r1").output_tokens == 0
