"""A training of Pollux' evaluation as work: progress by its true goodput, epoch by epoch."""

from __future__ import annotations

import math
from enum import Enum
from functools import lru_cache

from shared.performance.footprint import Footprint
from shared.performance.goodput import GoodputModel, GradientNoise
from shared.performance.rates import RateTable
from shared.performance.step_fit import MeasuredStep, fit
from shared.schedulers.view import Estimates
from simulator.rounds.applications import Application
from simulator.rounds.work import Ran

ROUNDING = 1e-8
MOST_GPUS = 64
NODE_GPUS = 4
GPU_TYPE = "t4"


class Knowledge(Enum):
    """Knowledge that a scheduler has of a training.

    `FITTED`: a model of the steps that it has made so far, and its batch size adapts to it.
    `ORACLE`: true step times by number of GPUs, and iterations to the end. `NONE`: nothing.
    """

    FITTED = "fitted"
    ORACLE = "oracle"
    NONE = "none"


class TrainingWork:
    """`batch` is fixed; None: it adapts."""

    def __init__(
        self, application: Application, batch: int | None, knowledge: Knowledge, most_gpus: int
    ) -> None:
        self.application = application
        self.batch = batch
        self.knowledge = knowledge
        self.most = most_gpus
        self.epoch = 0
        self.progress = 0.0
        self.examples = 0
        self.accumulated = 0
        self.footprint: Footprint | None = None
        self.measured: dict[tuple[int, int, int], MeasuredStep] = {}
        self.noise: tuple[float, float] | None = None
        self._model: GoodputModel | None = None
        self._is_stale = False
        self._fitted_steps = 0

    def settle(self, footprint: Footprint) -> None:
        self.footprint = footprint
        self._choose_batch()

    def run(self, footprint: Footprint, seconds: float) -> Ran:
        left_s = seconds
        while left_s > 0:
            goodput = self._step(footprint)
            goal = self.application.progress_after(self.epoch + 1)
            if self.progress + goodput * left_s < goal:
                self.progress += goodput * left_s
                self._choose_batch()
                return Ran(seconds, False)
            # The released simulator counts whole seconds at the end of an epoch.
            took_s = round((goal - self.progress) / goodput)
            self.epoch += 1
            self.progress = goal
            left_s -= took_s
            if self.epoch >= self.application.epochs:
                return Ran(seconds - left_s, True)
            self._choose_batch()
        return Ran(seconds, False)

    def left_s(self, footprint: Footprint) -> float | None:
        """Return None: progress differs by epoch and batch size."""
        return None

    def estimates(self) -> Estimates:
        if self.knowledge is Knowledge.FITTED:
            return Estimates("measured", goodput=self._fitted())
        if self.knowledge is Knowledge.ORACLE:
            return Estimates("oracle", self._iterations_left(), self._true_rates())
        return Estimates()

    def most_gpus(self) -> int | None:
        if self.knowledge is not Knowledge.FITTED:
            return self.most
        limits = self.application.limits
        seen = max((gpus for _, gpus, _ in self.measured), default=0)
        return min(max(2 * seen, 1), MOST_GPUS, limits.largest // limits.least_of_gpu, self.most)

    def _step(self, footprint: Footprint) -> float:
        """Measure a step as it is, and return progress per second."""
        seconds = self.application.steps(footprint.per_node, self.examples)
        batch = footprint.gpus * self.examples * (self.accumulated + 1)
        norm, variance = self.application.noise(batch, self.epoch)
        scale = batch / self.application.limits.initial
        gain = (variance + norm) / (variance / scale + norm)
        key = footprint.nodes, footprint.gpus, self.examples
        self._is_stale |= self.noise != (norm, variance)
        self.noise = norm, variance
        if key not in self.measured:
            self.measured[key] = MeasuredStep(*key, seconds.step_s, seconds.sync_s)
            self._is_stale = True
        computing_s = seconds.step_s - seconds.sync_s
        return float(gain / (seconds.step_s + computing_s * self.accumulated))

    def _fitted(self) -> GoodputModel | None:
        if self.noise is None:
            return None
        if self._is_stale:
            known = self._model.steps if self._model is not None else None
            fits = len(self.measured)
            if known is None or fits != self._fitted_steps:
                known = fit(list(self.measured.values()))
                self._fitted_steps = fits
            self._model = GoodputModel(known, GradientNoise(*self.noise), self.application.limits)
            self._is_stale = False
        return self._model

    def _choose_batch(self) -> None:
        assert self.footprint is not None
        limits, gpus = self.application.limits, self.footprint.gpus
        batch = self.batch
        model = self._fitted() if batch is None else None
        if model is not None:
            best = model.best([self.footprint.nodes], [gpus])
            self.examples = int(best.examples_of_gpu[0])
            self.accumulated = int(best.accumulated[0])
        else:
            if batch is None:
                batch = max(limits.initial, limits.least_of_gpu * gpus)
            self.examples, self.accumulated = split(batch, gpus, limits.most_of_gpu, limits.initial)
        count = gpus * (self.accumulated + 1)
        self.examples = min(self.examples, limits.largest // count)

    def _iterations_left(self) -> float:
        assert self.batch is not None
        last = self.application.epochs - 1
        if self.epoch >= last:
            return 1.0
        app = self.application
        return app.iterations_after(self.batch, last) - app.iterations_after(self.batch, self.epoch)

    def _true_rates(self) -> RateTable:
        assert self.batch is not None
        return true_rates(self.application, self.batch, self.most)


def split(batch: int, gpus: int, most_of_gpu: int, initial: int) -> tuple[int, int]:
    """Return examples of a GPU at a time and accumulated steps of a batch over so many GPUs."""
    of_gpu = math.ceil(batch / gpus - ROUNDING)
    accumulated = math.ceil(of_gpu / most_of_gpu - ROUNDING) - 1
    if gpus == 1 and batch > initial:
        accumulated = max(1, accumulated)
    return math.ceil(of_gpu / (accumulated + 1) - ROUNDING), accumulated


@lru_cache(maxsize=256)
def true_rates(application: Application, batch: int, most: int) -> RateTable:
    """Return iterations per second at a batch size by number of GPUs, on as few nodes as hold them.

    One GPU accumulates at least one step, as Optimus' evaluation has it.
    """
    rates = {}
    for gpus in range(1, most + 1):
        full, rest = divmod(gpus, NODE_GPUS)
        per_node = (NODE_GPUS,) * full + ((rest,) if rest else ())
        examples, accumulated = split(batch, gpus, application.limits.most_of_gpu, 0)
        examples = min(examples, application.limits.largest // (gpus * (accumulated + 1)))
        seconds = application.steps(per_node, examples)
        computing_s = seconds.step_s - seconds.sync_s
        rates[GPU_TYPE, gpus] = 1.0 / (seconds.step_s + computing_s * accumulated)
    return RateTable(rates)
