"""An EMULATED engine: no model, only the timing of one with continuous batching."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from services.throttle.core.state import Request
from shared.contracts.llm import TokensMade


@dataclass(slots=True)
class Sequence:
    """One request in the batch; `credit` is a part of a token."""

    request_id: str
    prompt_left: float
    left: float
    credit: float = 0.0


class EmulatedEngine:
    """Prompts are read one after the other while decoding stands still; then all decode in step,
    sharing the endpoint's tokens per second. It keeps no time: `advance` is told how much passed.
    """

    def __init__(self, seed: int, prefill_tokens_per_s: float) -> None:
        self._seed = seed
        self._prefill_tokens_per_s = prefill_tokens_per_s
        self._batch: dict[str, Sequence] = {}

    def hold(self, running: Mapping[str, Request]) -> None:
        """From now on exactly these. One begun before a crash goes on behind what was charged;
        its prompt and that part of its answer are read anew."""
        self._batch = {
            request_id: self._batch.get(request_id) or self._sequence(request)
            for request_id, request in running.items()
        }

    def advance(self, passed_s: float, tokens_per_s: float) -> tuple[TokensMade, ...]:
        left_s = self._prefill(passed_s)
        self._decode(left_s * tokens_per_s)
        return tuple(made for each in self._batch.values() if (made := _take(each)) is not None)

    def _sequence(self, request: Request) -> Sequence:
        length = answer_tokens(self._seed, request.request_id, request.max_output_tokens)
        return Sequence(request.request_id, request.held, max(length - request.made, 0))

    def _prefill(self, passed_s: float) -> float:
        for each in self._batch.values():
            read = min(each.prompt_left, passed_s * self._prefill_tokens_per_s)
            each.prompt_left -= read
            passed_s -= read / self._prefill_tokens_per_s
        return max(passed_s, 0.0)

    def _decode(self, tokens: float) -> None:
        """Whoever is complete leaves its share to the others."""
        while tokens > 1e-9:
            active = [e for e in self._batch.values() if e.left > 0 and not e.prompt_left]
            if not active:
                return
            step = min(tokens / len(active), min(each.left for each in active))
            for each in active:
                each.credit += step
                each.left -= step
            tokens -= step * len(active)


def answer_tokens(seed: int, request_id: str, max_output_tokens: int) -> int:
    """The same after a crash; a real engine cannot know it beforehand, and the decider does not."""
    return random.Random(f"{seed}/{request_id}").randint(1, max_output_tokens)


def _take(each: Sequence) -> TokensMade | None:
    """Whole tokens; floats that miss the last one by a hair are rounded when it is complete."""
    done = each.left <= 1e-6 and not each.prompt_left
    tokens = round(each.credit) if done else int(each.credit)
    each.credit -= tokens
    if not tokens and not done:
        return None
    return TokensMade(request_id=each.request_id, tokens=tokens, done=done)
