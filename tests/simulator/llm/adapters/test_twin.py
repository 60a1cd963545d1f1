"""The twin skips requests without a slot, holds memory, and meets throughputs of real runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.llm.adapters.engines import ENGINES
from simulator.llm.adapters.loads import AdapterLoad, AdapterRequest, draw_requests
from simulator.llm.adapters.twin import AdapterSlots, Twin, TwinReport

LLAMA, QWEN = ENGINES["llama-3.1-8b"], ENGINES["qwen2.5-7b"]


class OneStepTwin(Twin):
    """Counts each step alone."""

    def advance(self, until_s: float) -> None:
        super().advance(self.now_s)


def loads(count: int, rate: float, output: float = 100) -> list[AdapterLoad]:
    return [AdapterLoad(f"a{n}", 8, rate, 100, output) for n in range(count)]


def request(number: int, place: int, arrival_s: float, output: int = 10) -> AdapterRequest:
    return AdapterRequest(number, place, arrival_s, 100, output)


def served(twin: Twin, span_s: float = 120, seed: int = 1) -> TwinReport:
    return twin.run(draw_requests(twin.adapters, span_s, seed), span_s)


def test_a_request_without_a_slot_is_skipped_and_later_ones_pass_it() -> None:
    twin = Twin(LLAMA, 1, loads(2, 1.0))
    requests = [request(0, 0, 0.0, 50), request(1, 1, 0.1), request(2, 0, 0.2)]
    twin.run(requests, 60)
    first, skipped, later = (r.start_s or 0.0 for r in requests)
    assert first < later < skipped


def test_an_adapter_that_always_runs_starves_the_others() -> None:
    busy, rare = AdapterLoad("busy", 8, 5.0, 100, 200), AdapterLoad("rare", 8, 0.1, 100, 200)
    report = served(Twin(LLAMA, 1, [busy, rare]))
    assert report.oldest_adapter == "rare"
    assert report.starves(0.99, 30)
    assert not served(Twin(LLAMA, 8, [busy, rare])).starves(0.99, 30)


def test_the_adapter_idle_for_longest_leaves_its_slot() -> None:
    slots = AdapterSlots(2)
    assert slots.use(0) and slots.use(1)
    slots.release(1)
    slots.release(0)
    assert slots.use(2)
    assert slots.resident == {0, 2}
    assert not slots.use(0)


def test_the_newest_request_leaves_a_full_cache_and_is_served_later() -> None:
    small = replace(LLAMA, kv_tokens=2000, kv_per_slot_rank=0.0, longest_tokens=1)
    twin = Twin(small, 8, loads(2, 1.0))
    requests = [request(number, number % 2, 0.0, 500) for number in range(6)]
    report = twin.run(requests, 600)
    assert report.preempted > 0
    assert report.finished == 6
    assert twin.held_tokens == 0


def test_held_tokens_never_exceed_the_cache() -> None:
    small = replace(LLAMA, kv_tokens=6000, kv_per_slot_rank=0.0, longest_tokens=1)

    class Watched(Twin):
        def make_room(self) -> None:
            super().make_room()
            assert self.held_tokens + len(self.running) <= self.kv_tokens or len(self.running) == 1

    assert served(Watched(small, 8, loads(8, 1.0))).preempted > 0


def test_steps_counted_at_once_are_those_counted_one_by_one() -> None:
    adapters = loads(20, 0.2)
    at_once, one_by_one = served(Twin(LLAMA, 8, adapters)), served(OneStepTwin(LLAMA, 8, adapters))
    assert at_once.finished == one_by_one.finished
    assert at_once.steps == one_by_one.steps
    assert at_once.oldest_wait_s == pytest.approx(one_by_one.oldest_wait_s, abs=1e-6)


def test_slots_that_memory_does_not_hold_are_an_error() -> None:
    adapters = [AdapterLoad("a", 32, 1.0, 100, 100)]
    with pytest.raises(ValueError, match=r"slots: 128 of rank 32 leave 110,\d+ tokens"):
        served(Twin(LLAMA, 128, adapters))


def test_an_adapter_that_is_resident_is_not_loaded_again() -> None:
    assert served(Twin(LLAMA, 64, loads(32, 0.1))).loads <= 32
    assert served(Twin(LLAMA, 8, loads(32, 0.1))).loads > 32


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "slots", "adapters", "prompt", "output", "measured"),
    [
        (LLAMA, 128, 128, 222.7, 196.1, 3128),
        (LLAMA, 32, 32, 221.4, 198.0, 808),
        (LLAMA, 64, 256, 223.0, 197.2, 6177),
        (QWEN, 128, 192, 226.4, 196.6, 4648),
        (QWEN, 16, 128, 226.2, 196.4, 3103),
    ],
)
def test_throughput_is_that_of_real_runs(
    engine: object, slots: int, adapters: int, prompt: float, output: float, measured: float
) -> None:
    assert isinstance(engine, type(LLAMA))
    rates = (0.1, 0.05, 0.025)
    offered = [
        AdapterLoad(f"a{n}", 8 if n % 2 else 16, rates[n % 3], prompt, output)
        for n in range(adapters)
    ]
    report = served(Twin(engine, slots, offered), 3600)
    assert report.tokens_per_s == pytest.approx(measured, rel=0.06)
