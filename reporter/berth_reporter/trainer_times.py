"""Iterations of a trainer that calls back: from the end of one batch to the end of the next.

So the loading of data counts as own work; an evaluation between two batches is one of its own.
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
    """Measures batches and evaluations; to be called from the training thread alone."""

    def __init__(self, reporter: Reporter, samples: int | None = None) -> None:
        self.reporter = reporter
        self._samples = samples
        self._model: ModelTimes | None = None
        self._open = False
        self._begin_s: float | None = None
        self._evaluation_s: float | None = None

    def attach(self, model: ModelTimes | None) -> None:
        """Report each batch by the times of the model from now on."""
        self._model = model

    def begin(self, step: int, steps_total: int) -> None:
        """Begin a batch after `step` ones, unless the end of the last batch has begun it."""
        if not self._open:
            self._begin(step + 1, steps_total)

    def end(self, step: int, steps_total: int) -> None:
        """End the batch of number `step`, and begin the next one."""
        if self._model is not None:
            self._model.end()
        elif self._begin_s is not None:
            measured = Iteration(self._samples, None, TRAIN)
            elapsed_s = time.perf_counter() - self._begin_s
            self.reporter.send(step, elapsed_s, measured, _total(steps_total))
        self._begin(step + 1, steps_total)

    def begin_evaluation(self) -> None:
        """Give up the batch that was begun: an evaluation follows."""
        self._open = False
        self._evaluation_s = time.perf_counter()

    def end_evaluation(self, step: int) -> None:
        if self._evaluation_s is not None:
            elapsed_s = time.perf_counter() - self._evaluation_s
            self.reporter.report(step, elapsed_s, kind=EVALUATION)
        self._evaluation_s = None

    def _begin(self, step: int, steps_total: int) -> None:
        self._open = True
        if self._model is not None:
            self._model.begin(step, self._samples, _total(steps_total))
        else:
            self._begin_s = time.perf_counter()


def _total(steps_total: int) -> int | None:
    """Return the number of all batches; a trainer that is limited otherwise names -1."""
    return steps_total if steps_total > 0 else None
