"""Own work and waiting of a training with DistributedDataParallel (DDP), by its comm hook.

All ranks end an iteration together, as each waits for the slowest in the all-reduce. Its own work
ends when a rank hands over its last gradients, which is when the hook gets the last bucket; from
there to the end of the backward pass it waits. PyTorch is imported when the hook is attached.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from berth_reporter.clocks import Clock, clock_of
from berth_reporter.iteration import Iteration
from berth_reporter.reporter import TRAIN, Reporter, default_reporter
from berth_reporter.unread import MarkedIteration, Moment, UnreadIterations

DEFAULT_HOOK = "torch.distributed.algorithms.ddp_comm_hooks.default_hooks"
CommHook = Callable[[Any, Any], Any]


class BackwardIteration(MarkedIteration):
    """An iteration with the end of its own work and that of its backward pass."""

    __slots__ = ("handed", "returned")

    def __init__(
        self, step: int, steps_total: int | None, measured: Iteration, begin: Moment
    ) -> None:
        super().__init__(step, steps_total, measured, begin)
        self.handed: Moment = None
        """When the last gradients were handed to the all-reduce."""
        self.returned: Moment = None
        """When the backward pass was over."""


class DdpTimes:
    """Reports the iterations of a DDP model; use one per model, from its training thread."""

    def __init__(
        self,
        model: Any,
        reporter: Reporter | None = None,
        hook: CommHook | None = None,
        state: Any = None,
        clock: Clock | None = None,
    ) -> None:
        """Attach to the model; `hook` and `state` are the comm hook that it would have otherwise.

        Raises what `register_comm_hook` raises, as for a model that has one already.
        """
        torch = importlib.import_module("torch")
        self._engine = torch.autograd.Variable._execution_engine
        self._hook = hook or importlib.import_module(DEFAULT_HOOK).allreduce_hook
        self._reporter = reporter or default_reporter()
        self._clock = clock or clock_of(torch, model)
        self._current: BackwardIteration | None = None
        self._unread = UnreadIterations(self._clock, self._reporter, self._report)
        # PyTorch refuses a hook with annotations other than its own.
        model.register_comm_hook(state, lambda state, bucket: self._on_bucket(state, bucket))

    @contextmanager
    def iteration(
        self,
        step: int,
        samples: int | None = None,
        steps_total: int | None = None,
        tokens: int | None = None,
        kind: str = TRAIN,
    ) -> Iterator[Iteration]:
        """Measure and report the iteration in the body, unless the body raises."""
        measured = self.begin(step, samples, steps_total, tokens, kind)
        try:
            yield measured
        except BaseException:
            self._current = None
            raise
        self.end()

    def begin(
        self,
        step: int,
        samples: int | None = None,
        steps_total: int | None = None,
        tokens: int | None = None,
        kind: str = TRAIN,
    ) -> Iteration:
        """Begin an iteration, for loops whose body cannot be a `with` block."""
        measured = Iteration(samples, tokens, kind)
        self._current = BackwardIteration(step, steps_total, measured, self._clock.mark())
        return measured

    def end(self) -> None:
        """End the iteration that was begun, and report those that the device has reached."""
        ended, self._current = self._current, None
        if ended is None:
            return
        ended.end = self._clock.mark()
        self._unread.add(ended)

    def flush(self) -> None:
        """Report the iterations that the device has reached, oldest first."""
        self._unread.flush()

    def _report(self, ended: BackwardIteration) -> None:
        between_s, measured = self._clock.between_s, ended.measured
        if ended.handed is not None:
            measured.own_s = between_s(ended.begin, ended.handed)
            measured.delay_s = self._clock.delayed_s(ended.begin, ended.handed)
            if ended.returned is not None:
                measured.wait_s = between_s(ended.handed, ended.returned)
        self._reporter.send(
            ended.step, between_s(ended.begin, ended.end), measured, ended.steps_total
        )

    def _on_bucket(self, state: Any, bucket: Any) -> Any:
        if (current := self._current) is not None and bucket.is_last():
            current.handed = self._clock.mark()
            self._after_backward(current)
        return self._hook(state, bucket)

    def _after_backward(self, current: BackwardIteration) -> None:
        """Mark the end of the backward pass: DDP queues its own wait after this call, so that a
        callback has to queue the one that comes after it."""

        def mark() -> None:
            current.returned = self._clock.mark()

        def queue_last() -> None:
            self._engine.queue_callback(mark)

        try:
            self._engine.queue_callback(queue_last)
        except RuntimeError:  # no backward pass runs: without its end there is no `wait_s`
            return
