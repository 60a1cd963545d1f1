"""Iterations of a trainer that calls back: from the end of one batch to the end of the next.

So the loading of data counts as own work; an evaluation between two batches is one of its own.
Where gradients are accumulated, an iteration is all batches of one step of the optimizer: DDP
reduces in the last of them alone, and the number of the step stays the same in the others.
"""

from __future__ import annotations

import time
from typing import Protocol

from berth_reporter.iteration import Iteration
from berth_reporter.reporter import TRAIN, Reporter

EVALUATION = "evaluation"


class ModelTimes(Protocol):
    """Times of a model, such as `DdpTimes`."""

    def begin(
        self, step: int, samples: int | None = None, steps_total: int | None = None
    ) -> Iteration: ...
    def end(self) -> None: ...


class TrainerTimes:
    """Measures iterations and evaluations; to be called from the training thread alone."""

    def __init__(self, reporter: Reporter, samples: int | None = None) -> None:
        self.reporter = reporter
        self._samples = samples
        self._model: ModelTimes | None = None
        self._begun = 0
        """Steps that were done at the begin of the open iteration."""
        self._batches = 0
        """Those of the open iteration that have ended."""
        self._measured: Iteration | None = None
        """Of the open iteration; None if there is none."""
        self._begin_s = 0.0
        self._evaluation_s: float | None = None

    def attach(self, model: ModelTimes | None) -> None:
        """Report each iteration by the times of the model from now on."""
        self._model = model

    def begin(self, step: int, steps_total: int) -> None:
        """Begin a batch after `step` steps, unless the end of the last batch has begun it."""
        if self._measured is None:
            self._begin(step, steps_total)

    def end(self, step: int, steps_total: int, accumulated: int = 1) -> None:
        """End a batch after which `step` steps are done, and the iteration if it was the last one.

        `accumulated` are the batches of a step; the last step of an epoch may have fewer.
        """
        if self._measured is None:
            return
        self._batches += 1
        if step == self._begun and self._batches < accumulated:
            return
        if self._samples is not None:
            self._measured.samples = self._samples * self._batches
        if self._model is not None:
            self._model.end()
        else:
            elapsed_s = time.perf_counter() - self._begin_s
            self.reporter.send(step, elapsed_s, self._measured, _total(steps_total))
        self._begin(step, steps_total)

    def begin_evaluation(self) -> None:
        """Give up the iteration that was begun: an evaluation follows."""
        self._measured, self._evaluation_s = None, time.perf_counter()

    def end_evaluation(self, step: int) -> None:
        if self._evaluation_s is not None:
            elapsed_s = time.perf_counter() - self._evaluation_s
            self.reporter.report(step, elapsed_s, kind=EVALUATION)
        self._evaluation_s = None

    def _begin(self, step: int, steps_total: int) -> None:
        self._begun, self._batches = step, 0
        if self._model is not None:
            self._measured = self._model.begin(step + 1, self._samples, _total(steps_total))
        else:
            self._measured = Iteration(self._samples, None, TRAIN)
            self._begin_s = time.perf_counter()


def _total(steps_total: int) -> int | None:
    """Return the number of all steps; a trainer that is limited otherwise names -1."""
    return steps_total if steps_total > 0 else None
