"""One emulated engine in wall time: its queue, its batch, and the task that steps them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from simulator.emulator.errors import EngineError
from simulator.emulator.figures import EngineFigures, EngineGauges
from simulator.emulator.prompts import PrefixCache, count_tokens
from simulator.llm.batching import BatchingEngine, EngineLimits, StepCosts


@dataclass(slots=True, eq=False)
class AnswerSequence:
    """One answer in the making: a choice of a request."""

    work: EngineWork
    prompt: bytes
    prompt_tokens: int
    limit: int
    length: int
    """Tokens of the whole answer, which only the emulator knows beforehand."""
    cached_tokens: int = 0
    made_tokens: int = 0

    @property
    def finish_reason(self) -> str:
        return "length" if self.length >= self.limit else "stop"


class EngineWork:
    """The sequences of one request, and who waits for their tokens."""

    def __init__(self, *, stream: bool = False, generates: bool = True) -> None:
        self.sequences: list[AnswerSequence] = []
        self.stream = stream
        self.generates = generates
        """Whether its tokens are an answer; those of embeddings are none, and not counted."""
        self.submitted_at = 0.0
        self._left = 0
        self._ready = asyncio.Event()

    def add(self, prompt: bytes, limit: int, length: int) -> None:
        tokens = count_tokens(prompt)
        self.sequences.append(AnswerSequence(self, prompt, tokens, limit, length))
        self._left += 1

    @property
    def ended(self) -> bool:
        return self._left == 0

    @property
    def made_tokens(self) -> int:
        return sum(sequence.made_tokens for sequence in self.sequences)

    async def progress(self) -> None:
        """Wait until tokens were made since the last call; without a stream, until the end."""
        await self._ready.wait()
        self._ready.clear()

    async def until_ended(self) -> None:
        while not self.ended:
            await self.progress()

    def notify(self) -> None:
        self._ready.set()

    def end_one(self) -> None:
        self._left -= 1
        if not self._left:
            self._ready.set()


class EmulatedBatch:
    """Serves in order of arrival, each request as soon as the batch surely has room for it."""

    def __init__(
        self,
        figures: EngineFigures,
        limits: EngineLimits,
        costs: StepCosts,
        *,
        speed: float,
        queue_limit: int,
        prefix_cache: bool,
    ) -> None:
        self.figures = figures
        self.limits = limits
        self._engine = BatchingEngine[AnswerSequence](limits, costs)
        self._speed = speed
        self._queue_limit = queue_limit
        self._prefixes = PrefixCache(limits.kv_tokens) if prefix_cache else None
        self._waiting: OrderedDict[AnswerSequence, None] = OrderedDict()
        self._running: dict[AnswerSequence, None] = {}
        self._arrived = asyncio.Event()

    @property
    def context(self) -> int:
        """The most tokens of a prompt and its answer that an empty batch has room for."""
        return self.limits.kv_tokens - 1

    @property
    def gauges(self) -> EngineGauges:
        usage = self._engine.held_tokens / self.limits.kv_tokens
        return EngineGauges(len(self._running), len(self._waiting), min(usage, 1.0))

    @contextmanager
    def served(self, work: EngineWork) -> Iterator[None]:
        """Queue the request; behind the block nothing of it is left in the engine.

        Raises EngineError where too many requests wait.
        """
        if len(self._waiting) + len(work.sequences) > self._queue_limit:
            raise EngineError(503, f"the queue is full: {self._queue_limit} requests wait")
        work.submitted_at = asyncio.get_running_loop().time()
        self._waiting.update(dict.fromkeys(work.sequences))
        self._arrived.set()
        try:
            yield
        finally:
            for sequence in work.sequences:
                self._withdraw(sequence)

    def _withdraw(self, sequence: AnswerSequence) -> None:
        if sequence in self._waiting:
            del self._waiting[sequence]
        elif sequence in self._running:
            del self._running[sequence]
            # A sequence in its last step has left the engine already.
            if sequence in self._engine:
                self._engine.abort(sequence)
        else:
            return
        self.figures.finished["abort"] += 1

    async def run(self) -> None:
        """Step the batch while it has work; until cancelled."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time()
        while True:
            self._admit(loop.time())
            if not len(self._engine):
                self._arrived.clear()
                await self._arrived.wait()
                ends_at = loop.time()
                continue
            step = self._engine.step()
            duration_s = step.duration_s / self._speed
            # The next step follows this one however late the loop is: no time is lost.
            ends_at += duration_s
            await asyncio.sleep(ends_at - loop.time())
            self._deliver(loop.time(), duration_s, step.first, step.finished)

    def _admit(self, now: float) -> None:
        while self._waiting:
            sequence = next(iter(self._waiting))
            if not self._engine.fits(sequence.prompt_tokens, sequence.limit):
                return
            del self._waiting[sequence]
            self._start(sequence, now)

    def _start(self, sequence: AnswerSequence, now: float) -> None:
        figures = self.figures
        if self._prefixes is not None:
            sequence.cached_tokens = self._prefixes.cached_tokens(sequence.prompt)
            self._prefixes.add(sequence.prompt)
            figures.prefix_queries += sequence.prompt_tokens
            figures.prefix_hits += sequence.cached_tokens
        self._engine.start(
            sequence,
            sequence.prompt_tokens,
            sequence.limit,
            sequence.length,
            sequence.cached_tokens,
        )
        self._running[sequence] = None
        figures.prompt_tokens += sequence.prompt_tokens
        figures.prompt_sizes.observe(sequence.prompt_tokens)
        figures.queued.observe(now - sequence.work.submitted_at)

    def _deliver(
        self,
        now: float,
        duration_s: float,
        first: Sequence[AnswerSequence],
        finished: Sequence[AnswerSequence],
    ) -> None:
        """Hand out the tokens of a step; of requests that left during it, none is counted."""
        figures = self.figures
        for sequence in self._running:
            sequence.made_tokens += 1
            figures.generation_tokens += sequence.work.generates
            if sequence.work.stream:
                sequence.work.notify()
        begun = [sequence for sequence in first if sequence in self._running]
        for sequence in begun:
            figures.first_token.observe(now - sequence.work.submitted_at)
        figures.inter_token.observe(duration_s, len(self._running) - len(begun))
        for sequence in finished:
            if sequence in self._running:
                del self._running[sequence]
                figures.finished[sequence.finish_reason] += 1
                figures.answer_sizes.observe(sequence.made_tokens)
                figures.end_to_end.observe(now - sequence.work.submitted_at)
                sequence.work.end_one()
