"""The bounds of the VTC paper, checked on random loads over the emulated engine."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from statistics import median

from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from services.throttle.core.vtc import fits, next_request
from services.throttle.engine import EmulatedEngine
from shared.contracts.base import Event
from shared.contracts.llm import EngineAdvanced, LlmRequestQueued, LlmRequestStarted, TokensCharged
from shared.ledger.decider import Input
from shared.testing.decider import AT, an_input, run
from tests.services.throttle.llm import BATCH, lane, local_request

TICK_MS = 50
LONGEST_PROMPT = 200
U = max(1 * LONGEST_PROMPT, 2 * BATCH)


class World:
    """The decider, the engine, and a clock that jumps."""

    def __init__(self, tenants: tuple[str, ...], seed: int = 0) -> None:
        self.throttle = Throttle(queue_limit=10_000)
        self.lane: EndpointState = lane(tenants=tenants, throttle=self.throttle)
        self.engine = EmulatedEngine(seed, prefill_tokens_per_s=20_000)
        self.now = AT
        self.service: dict[str, float] = defaultdict(float)
        self.events: list[tuple[int, Event]] = []
        self.owner: dict[str, str] = {}

    def offer(self, *inputs: Input) -> None:
        self._decide(list(inputs))

    def tick(self) -> None:
        self.now += TICK_MS
        made = self.engine.advance(TICK_MS / 1000, 100.0)
        if made:
            self._decide([an_input(EngineAdvanced(made=made), "local")])

    def _decide(self, inputs: list[Input]) -> None:
        for event in run(self.throttle, self.lane, inputs, self.now):
            self.events.append((self.now, event))
            self._count(event)
        self.engine.hold(self.lane.running)
        first = next_request(self.lane)
        assert first is None or not fits(self.lane.running.values(), first, BATCH), (
            "work conservation: a first request that fits is served"
        )
        assert sum(request.held_tokens for request in self.lane.running.values()) <= BATCH

    def _count(self, event: Event) -> None:
        match event:
            case LlmRequestStarted(request_id=request_id, tenant=tenant):
                self.owner[request_id] = tenant
                self.service[tenant] += self.lane.running[request_id].prompt_tokens
            case TokensCharged(made=made):
                for progress in made:
                    self.service[self.owner[progress.request_id]] += 2 * progress.tokens


SIZES = st.tuples(st.integers(1, LONGEST_PROMPT), st.integers(1, 300))


@settings(max_examples=12, deadline=None)
@for_all(st.lists(SIZES, min_size=1, max_size=5), st.lists(SIZES, min_size=1, max_size=5))
def test_two_backlogged_tenants_never_drift_apart_beyond_the_bound(
    sizes_a: list[tuple[int, int]], sizes_b: list[tuple[int, int]]
) -> None:
    """|W_f - W_g| <= 2 max(w_p L_input, w_q M), at any moment, whatever the sizes are."""
    world = World(("a", "b"))
    backlog = [
        local_request(f"{tenant}{n}", tenant, *sizes[n % len(sizes)])
        for n in range(60)
        for tenant, sizes in (("a", sizes_a), ("b", sizes_b))
    ]
    world.offer(*backlog)
    start = dict(world.service)
    while all(account.queue for account in world.lane.accounts.values()):
        world.tick()
        gap = (world.service["a"] - start.get("a", 0.0)) - (
            world.service["b"] - start.get("b", 0.0)
        )
        assert abs(gap) <= 2 * U


@settings(max_examples=15, deadline=None)
@for_all(st.integers(0, 10**6))
def test_every_request_is_served_and_the_engine_never_idles_while_one_waits(seed: int) -> None:
    chance = random.Random(seed)
    world = World(("a", "b", "c"), seed)
    for n in range(80):
        tenant = chance.choice("aabbc")
        world.offer(local_request(f"r{n}", tenant, chance.randint(1, 200), chance.randint(1, 200)))
        for _ in range(chance.choice([0, 0, 1, 5])):
            world.tick()
        assert world.lane.running or not world.lane.waiting
    for _ in range(20_000):
        if not world.lane.running:
            break
        world.tick()
    assert not world.lane.waiting
    assert sum(isinstance(event, LlmRequestStarted) for _, event in world.events) == 80


def test_a_flood_of_one_tenant_hardly_delays_another() -> None:
    world = World(("flood", "calm"))
    world.offer(*[local_request(f"f{n}", "flood", 100, 200) for n in range(100)])
    for n in range(20):
        world.offer(local_request(f"c{n}", "calm", 20, 40))
        for _ in range(60):
            world.tick()
    waits = {
        event.request_id: event.waited_ms
        for _, event in world.events
        if isinstance(event, LlmRequestStarted)
    }
    calm = median(waits[f"c{n}"] for n in range(20))
    flood = max(wait for name, wait in waits.items() if name.startswith("f"))
    assert calm < 5_000 < flood


def test_the_estimated_wait_is_close_to_the_real_one(
    record_property: Callable[[str, object], None],
) -> None:
    """Of waits over a second, the estimate is right at the median and rarely far off."""
    ratios: list[float] = []
    for seed in range(4):
        chance = random.Random(seed)
        world = World(("a", "b", "c"), seed)
        for n in range(150):
            tenant = chance.choice("aaabbc")
            world.offer(
                local_request(f"r{n}", tenant, chance.randint(1, 200), chance.randint(20, 200))
            )
            for _ in range(chance.randint(0, 25)):
                world.tick()
        while world.lane.running:
            world.tick()
        queued = {e.request_id: e for _, e in world.events if isinstance(e, LlmRequestQueued)}
        started_by_id = {
            e.request_id: e for _, e in world.events if isinstance(e, LlmRequestStarted)
        }
        ratios += [
            queued[name].wait_s * 1000 / started.waited_ms
            for name, started in started_by_id.items()
            if started.waited_ms > 1000 and int(name[1:]) > 30
        ]
    ratios.sort()
    low, middle, high = (ratios[int(len(ratios) * part)] for part in (0.1, 0.5, 0.9))
    record_property("estimate_over_real_wait_p10_p50_p90", (low, middle, high))
    assert len(ratios) > 100
    assert 0.7 < middle < 1.4, (low, middle, high)
    assert low > 0.3, (low, middle, high)
    assert high < 3, (low, middle, high)
