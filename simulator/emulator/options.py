"""Options of an emulated engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.emulator.faults import FaultRates
from simulator.llm.batching import EngineLimits, StepCosts


@dataclass(frozen=True)
class EmulatorOptions:
    """`speed` divides all durations of the model; `keys` are accepted, all if there are none."""

    models: tuple[str, ...]
    adapters: tuple[str, ...] = ()
    """LoRA adapters: names served by the batch of the first model."""
    retrained: tuple[str, ...] = ()
    """Of these, the ones that the engine retrains beside serving, once it is given a share."""
    limits: EngineLimits = field(default_factory=EngineLimits)
    costs: StepCosts = field(default_factory=StepCosts)
    speed: float = 1.0
    queue_limit: int = 10_000
    """Requests that wait for one model at most; behind them a request gets 503."""
    prefix_cache: bool = True
    seed: int = 0
    keys: tuple[str, ...] = ()
    faults: FaultRates = field(default_factory=lambda: FaultRates({}))

    def __post_init__(self) -> None:
        names = (*self.models, *self.adapters)
        if not self.models:
            raise ValueError("model: at least one is required")
        if not all(names):
            raise ValueError("model: a name is empty")
        if len(set(names)) < len(names):
            raise ValueError("model: two models or adapters have one name")
        if unknown := [name for name in self.retrained if name not in self.adapters]:
            raise ValueError(f"retrain: {unknown[0]}: not an adapter of the engine")
        if not self.speed > 0:
            raise ValueError(f"speed: {self.speed} is not above 0")
        if self.queue_limit < 1:
            raise ValueError(f"queue_limit: {self.queue_limit} is below 1")
