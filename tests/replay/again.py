"""`python -m tests.replay.again`: today's code over the recorded inputs, as one JSON object."""

from __future__ import annotations

from typing import Any

import msgspec

from shared.ledger.decider import Decider, Decision
from tests.replay.cluster import DECIDERS, LANE, DecideCall
from tests.replay.golden import compared, path_of, read, state_hash


def replayed(decider: Decider[Any]) -> dict[str, object]:
    """`differs` names the first call that went another way."""
    calls, recorded = read(path_of(decider.ledger))
    state = decider.initial(LANE)
    for number, call in enumerate(calls):
        said = list(decide(decider, state, call))
        if told(said) != told(call.decisions):
            differs = {"call": number, "was": told(call.decisions), "is": told(said)}
            return {"calls": len(calls), "differs": differs}
    return {"calls": len(calls), "same_state": state_hash(state) == recorded}


def decide(decider: Decider[Any], state: Any, call: DecideCall) -> list[Decision]:
    said = DecideCall(call.seq, call.index, call.now, call.inputs)
    for decision in decider.decide(state, call.inputs, call.now):
        said.decisions.append(decision)
        decider.evolve(state, list(said.facts(decider.ledger))[-1])
    return said.decisions


def told(decisions: list[Decision]) -> list[str]:
    return [msgspec.json.encode(compared(each)).decode() for each in decisions]


if __name__ == "__main__":
    found = {decider().ledger: replayed(decider()) for decider in DECIDERS}
    print(msgspec.json.encode(found).decode())  # noqa: T201
