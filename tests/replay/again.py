"""`python -m tests.replay.again`: today's code over the recorded inputs, as one JSON object."""

from __future__ import annotations

from typing import Any

import msgspec

from shared.ledger.decider import Decider, Decision
from tests.replay.cluster import DECIDERS, LANE, DecideCall
from tests.replay.golden import compared, path_of, read, state_hash


def replayed(decider: Decider[Any]) -> dict[str, object]:
    """Compare a replay with the record; `differs` has the first call that is not equal."""
    calls, recorded = read(path_of(decider.ledger))
    state = decider.initial(LANE)
    for number, call in enumerate(calls):
        was, now = lines(call.decisions), lines(decide(decider, state, call))
        if was != now:
            first = next((pair for pair in zip(was, now, strict=False) if pair[0] != pair[1]), None)
            differs = {"call": number, "decisions": [len(was), len(now)], "was and is": first}
            return {"calls": len(calls), "differs": differs}
    return {"calls": len(calls), "same_state": state_hash(state) == recorded}


def decide(decider: Decider[Any], state: Any, call: DecideCall) -> list[Decision]:
    replay = DecideCall(call.seq, call.index, call.now, call.inputs)
    for decision in decider.decide(state, call.inputs, call.now):
        replay.decisions.append(decision)
        decider.evolve(state, list(replay.facts(decider.ledger))[-1])
    return replay.decisions


def lines(decisions: list[Decision]) -> list[str]:
    return [msgspec.json.encode(compared(decision)).decode() for decision in decisions]


if __name__ == "__main__":
    results = {decider().ledger: replayed(decider()) for decider in DECIDERS}
    print(msgspec.json.encode(results).decode())  # noqa: T201
