"""Stands in for the parts of PyTorch that the hooks use: a model with one comm hook, the queue of
callbacks at the end of a backward pass, and events of a GPU that lies behind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from berth_reporter.pytorch import DEFAULT_HOOK


class Engine:
    """Callbacks of the backward pass that runs; those that are queued meanwhile come last."""

    def __init__(self) -> None:
        self._queued: list[Callable[[], None]] | None = None

    def queue_callback(self, callback: Callable[[], None]) -> None:
        if self._queued is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        self._queued.append(callback)

    def backward(self, model: Model, wait: Callable[[], None], buckets: int = 2) -> None:
        """Hand the buckets to the hook; DDP queues its wait after the last one."""
        self._queued = []
        for number in range(buckets):
            model.hook(model.state, SimpleNamespace(is_last=lambda n=number: n == buckets - 1))
        self._queued.append(wait)
        for callback in iter_growing(self._queued):
            callback()
        self._queued = None


def iter_growing(queued: list[Callable[[], None]]) -> Any:
    place = 0
    while place < len(queued):
        yield queued[place]
        place += 1


class Model:
    """A DDP model on one device."""

    def __init__(self, device: str = "cpu") -> None:
        self._device = device
        self.state: Any = None
        self.hook: Callable[[Any, Any], Any] = lambda state, bucket: None

    def parameters(self) -> list[Any]:
        return [SimpleNamespace(device=SimpleNamespace(type=self._device))]

    def register_comm_hook(self, state: Any, hook: Callable[[Any, Any], Any]) -> None:
        self.state, self.hook = state, hook


class GpuTime:
    """The moments of a stream: an event is reached once the stream is past it."""

    def __init__(self) -> None:
        self.enqueued_ms = 0.0
        self.reached_ms = 0.0


def event_of(time: GpuTime) -> type:
    class Event:
        """A moment of the stream."""

        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing
            self.at_ms = 0.0

        def record(self) -> None:
            self.at_ms = time.enqueued_ms

        def query(self) -> bool:
            return self.at_ms <= time.reached_ms

        def elapsed_time(self, later: Event) -> float:
            return later.at_ms - self.at_ms

    return Event


def install(monkeypatch: pytest.MonkeyPatch, time: GpuTime | None = None) -> Engine:
    """Make `torch` importable."""
    engine, torch, hooks = Engine(), ModuleType("torch"), ModuleType(DEFAULT_HOOK)
    variable = SimpleNamespace(_execution_engine=engine)
    torch.autograd = SimpleNamespace(Variable=variable)  # type: ignore[attr-defined]
    torch.cuda = SimpleNamespace(Event=event_of(time or GpuTime()))  # type: ignore[attr-defined]
    hooks.allreduce_hook = lambda state, bucket: "reduced"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, DEFAULT_HOOK, hooks)
    return engine
