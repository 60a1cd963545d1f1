from __future__ import annotations

from hypothesis import given as for_all
from hypothesis import strategies as st

from services.throttle.core.state import LlmRequest
from services.throttle.engine import EmulatedEngine, answer_tokens

FAST = 1e9


def request(name: str, prompt: int = 10, most: int = 100, made: int = 0) -> LlmRequest:
    return LlmRequest(name, "a", prompt, most, queued_at=0, made_tokens=made)


def engine_with(*requests: LlmRequest, prefill: float = FAST) -> EmulatedEngine:
    engine = EmulatedEngine(0, prefill)
    engine.hold({request.request_id: request for request in requests})
    return engine


def test_the_batch_shares_the_tokens_per_second() -> None:
    engine = engine_with(*(request(f"r{n}", most=10_000) for n in range(4)))
    assert [made.tokens for made in engine.advance(1.0, 41.0)] == [10, 10, 10, 10]


def test_a_prompt_is_read_before_any_request_decodes() -> None:
    engine = engine_with(request("r1", prompt=1000, most=10_000), prefill=1000.0)
    assert engine.advance(1.0, 40.0) == ()
    assert [made.tokens for made in engine.advance(1.0, 40.0)] == [40]


def test_an_answer_ends_at_its_seeded_length() -> None:
    engine = engine_with(request("r1"))
    (made,) = engine.advance(1000.0, 40.0)
    assert made.done
    assert made.tokens == answer_tokens(0, "r1", 100)


def test_tokens_charged_before_a_crash_are_not_made_again() -> None:
    length = answer_tokens(0, "r1", 100)
    engine = engine_with(request("r1", made=length - 3))
    (made,) = engine.advance(1000.0, 40.0)
    assert (made.tokens, made.done) == (3, True)


def test_an_answer_that_was_complete_before_a_crash_is_reported_complete() -> None:
    engine = engine_with(request("r1", made=answer_tokens(0, "r1", 100)))
    (made,) = engine.advance(0.01, 40.0)
    assert (made.tokens, made.done) == (0, True)


@for_all(st.lists(st.floats(0.001, 3.0), max_size=60), st.integers(1, 6))
def test_tokens_are_neither_lost_nor_made_up(steps: list[float], many: int) -> None:
    """However time is cut into ticks, the engine makes tokens at its speed, to a token each."""
    live = {f"r{n}": request(f"r{n}", most=400) for n in range(many)}
    engine = engine_with(*live.values())
    made = dict.fromkeys(live, 0)
    for step in steps:
        for progress in engine.advance(step, 50.0):
            made[progress.request_id] += progress.tokens
            if progress.done:
                del live[progress.request_id]
        engine.hold(live)
    most = sum(answer_tokens(0, name, 400) for name in made)
    assert abs(sum(made.values()) - min(most, 50 * sum(steps))) <= many + 1
    for name, tokens in made.items():
        assert tokens <= answer_tokens(0, name, 400)
        assert (name in live) == (tokens < answer_tokens(0, name, 400))
