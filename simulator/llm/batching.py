"""The timing of an LLM engine that batches continuously, without clock, chance or model.

Each step decodes one token of every running request and reads the prompts of those that were
started since the step before. All running requests decode in step, so an answer ends at a step
that is fixed when it starts; a step costs no more work for a larger batch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Seconds that a step takes.

    The defaults are those of Llama-2-7b on an A10G, fitted to the throughput that the authors of
    VTC published (Sheng et al., OSDI'24): their figures are met within 20 %.
    """

    step_s: float = 0.0285
    held_token_s: float = 1e-6
    """Per token that the batch holds in the KV cache."""
    prompt_token_s: float = 3.6e-4
    """Per prompt token that the step reads; tokens of a cached prefix are not read."""

    def duration_s(self, held_tokens: int, prompt_tokens: int) -> float:
        return self.step_s + self.held_token_s * held_tokens + self.prompt_token_s * prompt_tokens


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The most that a batch may hold."""

    kv_tokens: int = 10_000
    """Tokens that the KV cache holds (VTC's evaluation: Llama-2-7b in 24 GB)."""
    batch_requests: int = 256
    """Requests of a batch (the default of vLLM's `max_num_seqs`)."""

    def __post_init__(self) -> None:
        for name in ("kv_tokens", "batch_requests"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is below 1")


@dataclass(slots=True)
class BatchedRequest(Generic[Key]):
    """A request of the batch; steps are counted from the engine's first."""

    key: Key
    prompt_tokens: int
    start_step: int
    limit_step: int
    """The step after which it has made `max_output_tokens`."""
    last_step: int
    """The step after which its answer is complete; the engine itself does not use it to admit."""

    @property
    def offset(self) -> int:
        """Tokens that it holds, less the steps made: the same in every step."""
        return self.prompt_tokens - self.start_step


@dataclass(frozen=True, slots=True)
class Step(Generic[Key]):
    """One step: every request that ran in it made one token, at its end."""

    duration_s: float
    first: tuple[Key, ...]
    """Requests that made their first token."""
    finished: tuple[Key, ...]
    """Requests that made their last token, and left the batch."""


@dataclass(slots=True)
class BatchingEngine(Generic[Key]):
    """A batch and what it holds. The caller decides which request is started, and when."""

    limits: EngineLimits = field(default_factory=EngineLimits)
    costs: StepCosts = field(default_factory=StepCosts)
    held_tokens: int = 0
    """Tokens in the KV cache: prompts of the running requests, and what they made."""
    _steps: int = 0
    _running: dict[Key, BatchedRequest[Key]] = field(default_factory=dict)
    _by_limit: list[BatchedRequest[Key]] = field(default_factory=list)
    """The running requests, the one that may run longest first; of equals, the latest first."""
    _ends: dict[int, list[Key]] = field(default_factory=dict)
    """Requests by their last step; those that were aborted stay until that step."""
    _started: list[Key] = field(default_factory=list)
    _prompt_tokens: int = 0
    """Prompt tokens that the next step has to read."""

    def __len__(self) -> int:
        return len(self._running)

    def __contains__(self, key: object) -> bool:
        return key in self._running

    def __iter__(self) -> Iterator[Key]:
        return iter(self._running)

    def made_tokens(self, key: Key) -> int:
        """Return how many tokens a running request has made; raises KeyError for another."""
        return self._steps - self._running[key].start_step

    def can_ever_fit(self, prompt_tokens: int, max_output_tokens: int) -> bool:
        """Return whether the request fits an empty batch."""
        return prompt_tokens + max_output_tokens < self.limits.kv_tokens

    def fits(self, prompt_tokens: int, max_output_tokens: int) -> bool:
        """Return whether the batch with one more stays in bounds, however long the answers get.

        The rule of S-LoRA's router, which counts the first token of a new request as made. The
        batch is largest just before a request ends: with those sorted by their limit, longest
        first, the peak before the i-th ends is what the first i hold then, the sum of their
        offsets and i times that step: it does not depend on the step of today. Only the peaks at
        and behind the new request can be too high.
        """
        if len(self._running) >= self.limits.batch_requests:
            return False
        limit_step = self._steps + max_output_tokens - 1
        place = self._place(limit_step)
        offsets = prompt_tokens + 1 - self._steps
        for request in self._by_limit[:place]:
            offsets += request.offset
        kv_tokens = self.limits.kv_tokens
        if offsets + (place + 1) * limit_step >= kv_tokens:
            return False
        for count, request in enumerate(self._by_limit[place:], place + 2):
            offsets += request.offset
            if offsets + count * request.limit_step >= kv_tokens:
                return False
        return True

    def start(
        self,
        key: Key,
        prompt_tokens: int,
        max_output_tokens: int,
        output_tokens: int | None = None,
        cached_tokens: int = 0,
    ) -> None:
        """Add a request to the batch, whether it fits or not; its first step reads its prompt.

        `output_tokens` is the length of its answer, `max_output_tokens` if absent;
        `cached_tokens` of the prompt are in the prefix cache and not read. Raises ValueError for a
        key that is running, and for counts that no request has.
        """
        length = max_output_tokens if output_tokens is None else output_tokens
        if key in self._running:
            raise ValueError(f"key: {key} is in the batch already")
        if not 1 <= length <= max_output_tokens:
            raise ValueError(f"output_tokens: {length} is not in 1..{max_output_tokens}")
        if not 0 <= cached_tokens <= prompt_tokens:
            raise ValueError(f"cached_tokens: {cached_tokens} is not in 0..{prompt_tokens}")
        now = self._steps
        request = BatchedRequest(key, prompt_tokens, now, now + max_output_tokens, now + length)
        self._running[key] = request
        self._by_limit.insert(self._place(request.limit_step), request)
        self._ends.setdefault(request.last_step, []).append(key)
        self._started.append(key)
        self.held_tokens += prompt_tokens
        self._prompt_tokens += prompt_tokens - cached_tokens

    def step(self) -> Step[Key]:
        """Decode one token of every request; those that are complete leave the batch.

        Raises ValueError for an empty batch, which has no steps.
        """
        if not self._running:
            raise ValueError("the batch is empty")
        duration_s = self.costs.duration_s(self.held_tokens, self._prompt_tokens)
        first = tuple(self._started)
        self._started.clear()
        self._prompt_tokens = 0
        self._steps += 1
        self.held_tokens += len(self._running)
        finished = tuple(self._ends.pop(self._steps, ()))
        for key in finished:
            self._leave(self._running.pop(key))
        return Step(duration_s, first, finished)

    def set_lengths(self, output_tokens: dict[Key, int]) -> None:
        """Give all running requests other lengths, for a future that differs in them alone."""
        self._ends.clear()
        for key, length in output_tokens.items():
            request = self._running[key]
            request.last_step = request.limit_step = request.start_step + length
            self._ends.setdefault(request.last_step, []).append(key)
        self._by_limit.sort(key=lambda request: -request.limit_step)

    def abort(self, key: Key) -> None:
        """Free what a running request holds, at once; raises KeyError for another."""
        request = self._running.pop(key)
        self._ends[request.last_step].remove(key)
        if request.start_step == self._steps:
            self._started.remove(key)
        self._leave(request)

    def _leave(self, request: BatchedRequest[Key]) -> None:
        self.held_tokens -= request.offset + self._steps
        place = self._place(request.limit_step)
        while self._by_limit[place] is not request:
            place += 1
        del self._by_limit[place]

    def _place(self, limit_step: int) -> int:
        return bisect_left(self._by_limit, -limit_step, key=lambda request: -request.limit_step)
