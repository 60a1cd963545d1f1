"""Memory and step times of engines are those that were measured."""

from __future__ import annotations

import pytest

from simulator.llm.adapters.engines import ENGINES, SLOT_CHOICES, scheduling_s

LLAMA, QWEN = ENGINES["llama-3.1-8b"], ENGINES["qwen2.5-7b"]


@pytest.mark.parametrize(
    ("engine", "slots", "rank", "logged"),
    [
        (LLAMA, 8, 8, 305_104),
        (LLAMA, 384, 8, 154_240),
        (LLAMA, 224, 16, 138_272),
        (LLAMA, 96, 32, 168_064),
        (QWEN, 8, 8, 700_816),
        (QWEN, 384, 16, 165_664),
        (QWEN, 160, 32, 250_432),
    ],
)
def test_caches_are_within_seven_percent_of_what_vllm_logged(
    engine: object, slots: int, rank: int, logged: int
) -> None:
    assert isinstance(engine, type(LLAMA))
    assert engine.cache_tokens(slots, rank) == pytest.approx(logged, rel=0.07)


@pytest.mark.parametrize(
    ("engine", "slots", "rank", "started"),
    [
        (LLAMA, 192, 16, True),
        (LLAMA, 256, 16, False),
        (LLAMA, 96, 32, True),
        (LLAMA, 128, 32, False),
        (LLAMA, 384, 8, True),
        (QWEN, 384, 16, True),
        (QWEN, 192, 32, True),
        (QWEN, 256, 32, False),
    ],
)
def test_engines_start_where_vllm_did(engine: object, slots: int, rank: int, started: bool) -> None:
    assert isinstance(engine, type(LLAMA))
    assert engine.starts(slots, rank) == started


def test_a_step_takes_longer_with_more_requests_and_more_adapters() -> None:
    assert LLAMA.step_s(10, 1) < LLAMA.step_s(11, 1) < LLAMA.step_s(11, 2)
    assert LLAMA.step_s(0, 0) == pytest.approx(0.02108, rel=0.01)


def test_scheduling_takes_no_negative_time() -> None:
    assert scheduling_s(0, 0, 1) == 0
    assert scheduling_s(1000, 0, 1) == pytest.approx(0.0038, rel=0.1)


def test_every_rank_has_a_time_to_load() -> None:
    for engine in ENGINES.values():
        assert all(
            engine.load_s(most, rank) > 0
            for most in (8, 16, 32)
            for rank in (8, 16, 32)
            if rank <= most
        )
    assert list(SLOT_CHOICES) == sorted(SLOT_CHOICES)
