"""One emulated engine in wall time: its queue, its batch, and the task that steps them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf

from simulator.emulator.errors import EngineError
from simulator.emulator.figures import EngineFigures, EngineGauges
from simulator.emulator.prompts import PrefixCache, count_tokens
from simulator.llm.adapter_retraining import AdapterRetraining, IterationNeeds
from simulator.llm.batching import BatchingEngine, EngineLimits, Step, StepCosts

RETRAINING_CHECK_S = 0.05
"""Time between two looks at the adapters of an engine without requests."""


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
    first_at: float = 0.0
    """When its first token was made; 0 before."""

    @property
    def finish_reason(self) -> str:
        return "length" if self.length >= self.limit else "stop"


class EngineWork:
    """The sequences of one request, and the response that waits for their tokens."""

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


NO_STEP: Step[AnswerSequence] = Step(0.0, (), ())
"""A step of an engine that retrains alone."""


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
        retraining: AdapterRetraining | None = None,
    ) -> None:
        self.figures = figures
        self._retraining = retraining
        self._unread_tokens = 0
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
            tokens = self._choose_retraining(loop.time())
            if not len(self._engine) and not tokens:
                await self._wait_for_work()
                ends_at = loop.time()
                continue
            step = self._engine.step() if len(self._engine) else NO_STEP
            self._unread_tokens = 0
            duration_s = (step.duration_s + self._retraining_s(tokens)) / self._speed
            # The next step follows this one however late the loop is: no time is lost.
            ends_at += duration_s
            await asyncio.sleep(ends_at - loop.time())
            self._deliver(loop.time(), duration_s, step.first, step.finished)
            if tokens and self._retraining is not None:
                self._retraining.trained(
                    tokens, duration_s * self._speed, loop.time() * self._speed
                )

    async def _wait_for_work(self) -> None:
        """Wait for a request; with adapters to retrain, for one of these to be worth it too."""
        self._arrived.clear()
        if self._retraining is None:
            await self._arrived.wait()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(RETRAINING_CHECK_S):
                await self._arrived.wait()

    def _choose_retraining(self, now: float) -> int:
        """Return the tokens that the next step also trains on."""
        retraining = self._retraining
        if retraining is None or not retraining.share:
            return 0
        tokens = retraining.next_tokens(self._load(now, retraining), now * self._speed)
        self._reserve(retraining)
        return tokens

    def _retraining_s(self, tokens: int) -> float:
        return 0.0 if self._retraining is None else self._retraining.costs.retraining_of(tokens)

    def _reserve(self, retraining: AdapterRetraining) -> None:
        """Keep the memory that a batch in progress holds."""
        held = retraining.limits.state_tokens if retraining.in_progress else 0
        self._engine.limits = EngineLimits(
            max(1, self.limits.kv_tokens - held), self.limits.batch_requests
        )

    def _load(self, now: float, retraining: AdapterRetraining) -> IterationNeeds:
        """Return what serving needs of the next step; times are those of the model."""
        limits = retraining.limits
        begun = [item for item in self._running if item.first_at]
        others = [item for item in self._running if not item.first_at]
        due = (item.first_at + item.made_tokens * limits.aim_s / self._speed for item in begun)
        first_due = (
            item.work.submitted_at + limits.ttft_s / self._speed
            for item in (*others, *self._waiting)
        )
        reserved = sum(item.prompt_tokens + item.limit for item in self._running)
        return IterationNeeds(
            len(self._running),
            self._engine.held_tokens,
            self._unread_tokens,
            len(self._waiting),
            self._engine.limits.kv_tokens - reserved,
            (min(due, default=inf) - now) * self._speed,
            (min(first_due, default=inf) - now) * self._speed,
        )

    def _admit(self, now: float) -> None:
        while self._waiting:
            sequence = next(iter(self._waiting))
            if not self._fits(sequence):
                return
            del self._waiting[sequence]
            self._start(sequence, now)

    def _fits(self, sequence: AnswerSequence) -> bool:
        """Return whether it may start; a batch that is retrained leaves memory for it."""
        if self._engine.fits(sequence.prompt_tokens, sequence.limit):
            return True
        retraining = self._retraining
        if retraining is None or not retraining.in_progress:
            return False
        self._engine.limits = self.limits
        fits = self._engine.fits(sequence.prompt_tokens, sequence.limit)
        retraining.make_room(fits)
        self._reserve(retraining)
        return fits

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
        self._unread_tokens += sequence.prompt_tokens - sequence.cached_tokens
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
            sequence.first_at = now
            figures.first_token.observe(now - sequence.work.submitted_at)
        figures.inter_token.observe(duration_s, len(self._running) - len(begun))
        for sequence in finished:
            if sequence in self._running:
                del self._running[sequence]
                figures.finished[sequence.finish_reason] += 1
                figures.answer_sizes.observe(sequence.made_tokens)
                figures.end_to_end.observe(now - sequence.work.submitted_at)
                sequence.work.end_one()
