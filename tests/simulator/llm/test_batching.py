"""A batch behaves as one that is stepped token by token, and never outgrows its KV cache."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.llm.batching import BatchingEngine, EngineLimits, StepCosts

KV_TOKENS = 400
LIMITS = EngineLimits(KV_TOKENS, batch_requests=6)
COSTS = StepCosts()


@dataclass(slots=True)
class Plain:
    """A request of the plain loop: S-LoRA's, as the artifact of VTC has it."""

    key: int
    arrival_s: float
    prompt: int
    limit: int
    length: int
    made: int = 0


@st.composite
def requests(draw: st.DrawFn) -> list[Plain]:
    rows = draw(
        st.lists(
            st.tuples(
                st.floats(0, 20), st.integers(1, 150), st.integers(1, 150), st.integers(1, 150)
            ),
            min_size=1,
            max_size=40,
        )
    )
    rows.sort()
    return [
        Plain(key, at, prompt, limit, min(limit, length))
        for key, (at, prompt, limit, length) in enumerate(rows)
    ]


def plain_fits(running: Sequence[Plain], candidate: Plain) -> bool:
    if len(running) >= LIMITS.batch_requests:
        return False
    batch = [(item.limit - item.made, item.prompt + item.made) for item in running]
    held = 0
    rows = sorted([*batch, (candidate.limit - 1, candidate.prompt + 1)], reverse=True)
    for count, (remaining, tokens) in enumerate(rows, 1):
        held += tokens
        if held + count * remaining >= KV_TOKENS:
            return False
    return True


def plain_loop(arrivals: Iterable[Plain]) -> list[tuple[str, int, float]]:
    """Serve in order of arrival, token by token: what happened to which request, and when."""
    coming, kept = list(arrivals), list[tuple[str, int, float]]()
    waiting, running = list[Plain](), list[Plain]()
    now = 0.0
    while coming or waiting or running:
        if not waiting and not running:
            now = max(now, coming[0].arrival_s)
        while coming and coming[0].arrival_s <= now:
            waiting.append(coming.pop(0))
        read = 0
        while waiting and plain_fits(running, waiting[0]):
            running.append(item := waiting.pop(0))
            kept.append(("start", item.key, now))
            read += item.prompt
        held = sum(item.prompt + item.made for item in running)
        now += COSTS.step_s + COSTS.held_token_s * held + COSTS.prompt_token_s * read
        for item in running:
            item.made += 1
        kept += [("first", item.key, now) for item in running if item.made == 1]
        kept += [("end", item.key, now) for item in running if item.made == item.length]
        running = [item for item in running if item.made < item.length]
    return kept


def engine_loop(arrivals: Iterable[Plain]) -> list[tuple[str, int, float]]:
    coming, waiting = list(arrivals), list[Plain]()
    kept: list[tuple[str, int, float]] = []
    engine = BatchingEngine[int](LIMITS, COSTS)
    now = 0.0
    while coming or waiting or len(engine):
        if not waiting and not len(engine):
            now = max(now, coming[0].arrival_s)
        while coming and coming[0].arrival_s <= now:
            waiting.append(coming.pop(0))
        while waiting and engine.fits(waiting[0].prompt, waiting[0].limit):
            item = waiting.pop(0)
            engine.start(item.key, item.prompt, item.limit, item.length)
            kept.append(("start", item.key, now))
        step = engine.step()
        assert engine.held_tokens < KV_TOKENS
        now += step.duration_s
        kept += [("first", key, now) for key in step.first]
        kept += [("end", key, now) for key in step.finished]
    assert engine.held_tokens == 0
    return kept


@given(requests())
def test_an_engine_serves_as_a_loop_token_by_token_does(arrivals: list[Plain]) -> None:
    by_engine = engine_loop(arrivals)
    assert sorted(by_engine) == sorted(plain_loop(arrivals))


@given(requests(), st.data())
def test_an_abort_leaves_the_batch_as_if_the_request_had_never_run(
    arrivals: list[Plain], data: st.DataObject
) -> None:
    engine, alone = BatchingEngine[int](LIMITS), BatchingEngine[int](LIMITS)
    aborted = {item.key for item in arrivals if data.draw(st.booleans())}
    for item in arrivals:
        if engine.fits(item.prompt, item.limit):
            engine.start(item.key, item.prompt, item.limit, item.length)
            if item.key not in aborted:
                alone.start(item.key, item.prompt, item.limit, item.length)
        if data.draw(st.booleans()) and len(alone):
            engine.step(), alone.step()
    for key in aborted & set(engine):
        engine.abort(key)
    assert list(engine) == list(alone)
    assert engine.held_tokens == alone.held_tokens
    while len(alone):
        step, other = engine.step(), alone.step()
        assert (step.first, set(step.finished)) == (other.first, set(other.finished))
    assert len(engine) == engine.held_tokens == 0


def test_a_step_costs_what_it_holds_and_reads() -> None:
    engine = BatchingEngine[str](costs=StepCosts(1.0, 0.01, 0.1))
    engine.start("a", 10, 3)
    engine.start("b", 20, 5, output_tokens=1, cached_tokens=16)
    step = engine.step()
    assert step.duration_s == pytest.approx(1.0 + 0.01 * 30 + 0.1 * 14)
    assert (step.first, step.finished) == (("a", "b"), ("b",))
    assert engine.step().duration_s == pytest.approx(1.0 + 0.01 * 11)
    assert engine.made_tokens("a") == 2
    assert engine.step().finished == ("a",)


def test_a_request_fits_where_prompt_and_longest_answer_stay_below_the_cache() -> None:
    engine = BatchingEngine[str](EngineLimits(100))
    assert engine.can_ever_fit(49, 50)
    assert not engine.can_ever_fit(50, 50)
    assert engine.fits(49, 50)
    assert not engine.fits(50, 50)


def test_what_ends_before_the_other_can_grow_leaves_its_room() -> None:
    engine = BatchingEngine[str](EngineLimits(100))
    engine.start("short", 40, 10)
    assert engine.fits(20, 79)
    assert not engine.fits(40, 40)


@pytest.mark.parametrize(
    ("counts", "field"),
    [
        ((5, 10, 0), "output_tokens"),
        ((5, 10, 11), "output_tokens"),
        ((5, 10, 10, 6), "cached_tokens"),
        ((5, 10, 10, -1), "cached_tokens"),
    ],
)
def test_counts_that_no_request_has_are_refused(counts: tuple[int, ...], field: str) -> None:
    engine = BatchingEngine[str]()
    with pytest.raises(ValueError, match=f"^{field}: "):
        engine.start("a", *counts)
    assert not len(engine)


def test_a_key_runs_once() -> None:
    engine = BatchingEngine[str]()
    engine.start("a", 1, 1)
    with pytest.raises(ValueError, match="a is in the batch already"):
        engine.start("a", 1, 1)


def test_an_empty_batch_has_no_steps_and_nothing_to_abort() -> None:
    engine = BatchingEngine[str]()
    with pytest.raises(ValueError, match="empty"):
        engine.step()
    with pytest.raises(KeyError):
        engine.abort("a")


@pytest.mark.parametrize("limits", [{"kv_tokens": 0}, {"batch_requests": 0}])
def test_limits_are_at_least_one(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="below 1"):
        EngineLimits(**limits)
