"""A callback for PyTorch Lightning, which is imported when the callback is made."""

from __future__ import annotations

import importlib
from typing import Any

from berth_reporter.pytorch import DdpTimes
from berth_reporter.reporter import Reporter, default_reporter
from berth_reporter.trainer_times import TrainerTimes

MODULES = ("lightning.pytorch", "pytorch_lightning")


def callback(reporter: Reporter | None = None, samples: int | None = None) -> Any:
    """Return a callback for a `Trainer`; `samples` are those of one batch on this rank.

    Raises ModuleNotFoundError without PyTorch Lightning.
    """
    base: Any = _lightning().Callback
    times = TrainerTimes(reporter or default_reporter(), samples)

    class BerthCallback(base):  # type: ignore[misc]
        """Passes the moments of the trainer on."""

        def on_train_start(self, trainer: Any, module: Any) -> None:
            times.attach(ddp_times(trainer, times.reporter))

        def on_train_batch_start(self, trainer: Any, *_: Any, **__: Any) -> None:
            times.begin(trainer.global_step, trainer.max_steps)

        def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
            accumulated = trainer.accumulate_grad_batches
            times.end(trainer.global_step, trainer.max_steps, accumulated)

        def on_validation_start(self, trainer: Any, module: Any) -> None:
            times.begin_evaluation()

        def on_validation_end(self, trainer: Any, module: Any) -> None:
            times.end_evaluation(trainer.global_step)

    return BerthCallback()


def ddp_times(trainer: Any, reporter: Reporter) -> DdpTimes | None:
    """Return the times of the trainer's DDP model, None for another strategy or hook."""
    model = getattr(trainer.strategy, "model", None)
    if not hasattr(model, "register_comm_hook"):
        return None
    try:
        return DdpTimes(model, reporter)
    except Exception:  # the strategy registered a hook of its own
        return None


def _lightning() -> Any:
    for name in MODULES:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(f"PyTorch Lightning is not installed: {' or '.join(MODULES)}")
