"""An emulated engine: it runs no model and has only the timing of continuous batching."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from services.throttle.core.state import LlmRequest
from shared.contracts.llm import TokensMade


@dataclass(slots=True)
class DecodingSequence:
    """One request in the batch; `credit` counts tokens made and not reported, with fractions."""

    request_id: str
    prompt_left: float
    output_left: float
    credit: float = 0.0


class EmulatedEngine:
    """Prompts are read one after the other while decoding stands still; then all decode in step,
    sharing the endpoint's tokens per second. It has no clock: `advance` takes the time passed.
    """

    def __init__(self, seed: int, prefill_tokens_per_s: float) -> None:
        self._seed = seed
        self._prefill_tokens_per_s = prefill_tokens_per_s
        self._batch: dict[str, DecodingSequence] = {}

    def hold(self, running: Mapping[str, LlmRequest]) -> None:
        """Set the batch to exactly these requests.

        One begun before a crash goes on behind the tokens charged; its prompt and that part of its
        answer are read again.
        """
        self._batch = {
            request_id: self._batch.get(request_id) or self._sequence(request)
            for request_id, request in running.items()
        }

    def advance(self, passed_s: float, tokens_per_s: float) -> tuple[TokensMade, ...]:
        """Let time pass and return the progress of each request that made any."""
        decode_s = self._prefill(passed_s)
        self._decode(decode_s * tokens_per_s)
        progress = [_take_progress(sequence) for sequence in self._batch.values()]
        return tuple(report for report in progress if report is not None)

    def _sequence(self, request: LlmRequest) -> DecodingSequence:
        length = answer_tokens(self._seed, request.request_id, request.max_output_tokens)
        output_left = max(length - request.made_tokens, 0)
        return DecodingSequence(request.request_id, request.held_tokens, output_left)

    def _prefill(self, passed_s: float) -> float:
        """Read prompts and return the seconds left for decoding."""
        for sequence in self._batch.values():
            read = min(sequence.prompt_left, passed_s * self._prefill_tokens_per_s)
            sequence.prompt_left -= read
            passed_s -= read / self._prefill_tokens_per_s
        return max(passed_s, 0.0)

    def _decode(self, tokens: float) -> None:
        """Share the tokens; a sequence that is complete leaves its share to the others."""
        while tokens > 1e-9:
            active = [
                sequence
                for sequence in self._batch.values()
                if sequence.output_left > 0 and not sequence.prompt_left
            ]
            if not active:
                return
            shortest = min(sequence.output_left for sequence in active)
            step = min(tokens / len(active), shortest)
            for sequence in active:
                sequence.credit += step
                sequence.output_left -= step
            tokens -= step * len(active)


def answer_tokens(seed: int, request_id: str, max_output_tokens: int) -> int:
    """Return the length of the answer, the same after a crash.

    A real engine does not have it beforehand, and the decider must not use it.
    """
    return random.Random(f"{seed}/{request_id}").randint(1, max_output_tokens)


def _take_progress(sequence: DecodingSequence) -> TokensMade | None:
    """Take the whole tokens; rounding errors of the last one are removed when it is complete."""
    done = sequence.output_left <= 1e-6 and not sequence.prompt_left
    tokens = round(sequence.credit) if done else int(sequence.credit)
    sequence.credit -= tokens
    if not tokens and not done:
        return None
    return TokensMade(request_id=sequence.request_id, tokens=tokens, done=done)
