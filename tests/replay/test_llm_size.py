"""The size of the throttle's ledger and state, as the runbook of LLM endpoints names it."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from shared.contracts.codec import encode_event
from shared.contracts.llm import EngineAdvanced, RequestEnd, RequestsEnded, TokensMade
from shared.ledger.decider import Fact
from shared.ledger.record import Record, StoredEvent, encode, pack
from tests.harness.decider import AT, an_input, run_facts
from tests.services.throttle.llm import endpoint, lane, local_request

PAGE = (Path(__file__).parents[2] / "docs" / "operations" / "llm.md").read_text()
REQUESTS = 1_000
ID = "0123456789abcdef" * 2
TRACE = f"00-{ID}-0123456789abcdef-01"


def record_bytes(facts: list[Fact]) -> int:
    """Return the size of the ledger record of these facts."""
    events = [
        StoredEvent(f.event.TYPE, f.event.subject, msgspec.Raw(encode_event(f.event)), TRACE)
        for f in facts
    ]
    return len(encode(Record(ID, 1, ID, "throttle-0", AT, {"llm.requests-0": 1}, pack(events))))


def serve(state: EndpointState, number: int) -> list[list[Fact]]:
    """Serve one request with ids of usual lengths; a record per reservation, a share of others."""
    name = f"{number:032d}"
    labels: dict[str, Any] = {"user": f"user-{number}", "interaction": name, "application": "app"}
    items = [
        local_request(name, **labels),
        an_input(EngineAdvanced(made=(TokensMade(request_id=name, tokens=5),)), "local"),
        an_input(
            RequestsEnded(
                ends=(RequestEnd(request_id=name, outcome="completed", output_tokens=9),)
            ),
            "local",
        ),
    ]
    return [run_facts(Throttle(), state, [item], AT + number) for item in items]


def test_a_request_takes_about_as_much_of_the_ledger_as_the_page_says() -> None:
    state = lane(settings=endpoint(batch_tokens=None))
    records = [facts for number in range(REQUESTS) for facts in serve(state, number)]
    # Ends and reports of a second share a record, so that most of a record's frame is shared.
    frame = record_bytes([])
    size = sum(record_bytes(facts) - frame for facts in records) / REQUESTS + 1.2 * frame
    (named_kb,) = re.findall(r"about ([\d.]+) KB of the ledger", PAGE)
    assert size / 1000 == pytest.approx(float(named_kb), rel=0.25)


def test_the_state_grows_by_what_it_remembers_of_each_request_and_no_more() -> None:
    state = lane(settings=endpoint(batch_tokens=None))
    for number in range(REQUESTS):
        serve(state, number)
    assert not state.waiting
    assert not state.running
    assert len(pickle.dumps(state)) / REQUESTS < 200
