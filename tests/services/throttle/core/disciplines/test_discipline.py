"""Guards and order see the same events, and a replay of the events gives the same state."""

from __future__ import annotations

import pickle

import pytest

from services.throttle.core.disciplines.budgets import Budget
from services.throttle.core.disciplines.catalog import DISCIPLINES
from services.throttle.core.disciplines.discipline import Discipline
from services.throttle.core.disciplines.limits import Limits
from services.throttle.core.disciplines.meters import HalfLife
from services.throttle.core.disciplines.rates import RequestRate
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.vtc import Vtc
from tests.services.throttle.core.disciplines.serving import (
    BUSY,
    Endpoint,
    a_request,
    plain,
    random_load,
)


def limits() -> Limits:
    budget = Budget(100_000, memory=HalfLife(60_000))
    return Limits(20, 60, 100_000, True, (budget,), classes=2, slack=30, cached_blocks=10)


class RecordedDiscipline(Discipline):
    """A discipline that writes down which events changed it."""

    events: list[tuple[str, str, int, int]]

    def enqueue(self, request: ServedRequest) -> None:
        self.events.append(("enqueue", request.request_id, 0, request.queued_at))
        super().enqueue(request)

    def start(self, request: ServedRequest, at: int) -> None:
        self.events.append(("start", request.request_id, 0, at))
        super().start(request, at)

    def charge(self, request: ServedRequest, tokens: int, at: int) -> None:
        self.events.append(("charge", request.request_id, tokens, at))
        super().charge(request, tokens, at)

    def finish(self, request: ServedRequest) -> None:
        self.events.append(("finish", request.request_id, 0, 0))
        super().finish(request)


@pytest.mark.parametrize("name", DISCIPLINES)
def test_a_replay_gives_the_same_state(name: str) -> None:
    load = random_load(4, "abcd", spread_ms=20_000)
    made = DISCIPLINES[name](limits())
    live = RecordedDiscipline(made.order, made.guards)
    live.events = []
    Endpoint(live, load.batch_tokens).serve(load.offers)
    requests = {
        offer.request.request_id: offer.request for offer in random_load(4, "abcd", 20_000).offers
    }
    replay = DISCIPLINES[name](limits())
    for kind, request_id, tokens, at in live.events:
        request = requests[request_id]
        match kind:
            case "enqueue":
                request.queued_at = at
                replay.enqueue(request)
            case "start":
                replay.start(request, at)
            case "charge":
                replay.charge(request, tokens, at)
            case "finish":
                replay.finish(request)
    assert plain(replay.order) == plain(live.order)
    assert plain(replay.guards) == plain(live.guards)


@pytest.mark.parametrize("name", DISCIPLINES)
def test_a_copy_goes_on_as_the_original_does(name: str) -> None:
    load = random_load(5, "abc")
    original = Endpoint(DISCIPLINES[name](limits()), load.batch_tokens)
    lengths = {offer.request.request_id: offer.length for offer in load.offers}
    for offer in load.offers:
        original.offer(offer.request)
    original.admit(lengths)
    copy = pickle.loads(pickle.dumps(original))
    for endpoint in (original, copy):
        while len(endpoint.engine):
            endpoint.step()
            endpoint.admit(lengths)
    assert copy.started == original.started
    assert plain(copy.discipline) == plain(original.discipline)


def test_the_first_refusal_holds() -> None:
    discipline = Discipline(Vtc(), (RequestRate(5), Budget(1), RequestRate(1)))
    refused = discipline.refusal(a_request(), BUSY, 0)
    assert refused is not None
    assert refused.reason == "above_budget"


def test_guards_hear_of_every_event() -> None:
    budget = Budget(1000)
    discipline = Discipline(Vtc(), (budget,))
    one, two = a_request("1"), a_request("2")
    for request in (one, two):
        discipline.enqueue(request)
    discipline.withdraw(two)
    discipline.start(one, 5)
    discipline.charge(one, 4, 6)
    discipline.finish(one)
    usage = budget.usages.values[""].values["a"]
    assert (usage.held, usage.meter.total(6)) == (0, 14)
    assert one.made_tokens == 4
    assert discipline.level == 18
    discipline.rebase()
    assert discipline.level == 0


def test_a_weight_must_be_above_zero() -> None:
    with pytest.raises(ValueError, match="weight: 0"):
        Discipline(Vtc()).set_weight("a", 0)
