"""The comm hook tells own work from waiting; a GPU that lies behind is not waited for."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from berth_reporter import Reporter
from berth_reporter.pytorch import DdpTimes
from berth_reporter.unread import MOST_UNREAD
from tests.reporter.sent import Sent, sent_fixture
from tests.reporter.torch_double import GpuTime, Model, install

sent = sent_fixture


class StepClock:
    """A clock that a test sets, in s; a quarter of the time its thread waits for a processor."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def mark(self) -> float:
        return self.now_s

    def is_reached(self, moment: float) -> bool:
        return True

    def between_s(self, first: float, second: float) -> float:
        return second - first

    def delayed_s(self, first: float, second: float) -> float:
        return (second - first) / 4

    def passes(self, seconds: float) -> None:
        self.now_s += seconds


def test_own_work_ends_with_the_last_bucket_and_waiting_with_the_backward_pass(
    sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, model, clock = install(monkeypatch), Model(), StepClock()
    times = DdpTimes(model, sent.reporter, clock=clock)
    with times.iteration(7, samples=64, steps_total=100):
        clock.passes(2.0)
        engine.backward(model, lambda: clock.passes(3.0))
        clock.passes(0.5)
    [one] = sent.datagrams()
    assert (one.step, one.samples, one.steps_total) == (7, 64, 100)
    assert (one.iteration_s, one.own_s, one.wait_s, one.delay_s) == (5.5, 2.0, 3.0, 0.5)


def test_the_models_own_hook_still_reduces(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    model, calls = Model(), list[tuple[Any, Any]]()

    def hook(state: Any, bucket: Any) -> str:
        calls.append((state, bucket))
        return "halved"

    DdpTimes(model, sent.reporter, hook=hook, state="group")
    assert (model.hook(model.state, "bucket"), calls) == ("halved", [("group", "bucket")])
    DdpTimes(model, sent.reporter)
    assert model.hook(model.state, "bucket") == "reduced"


def test_an_iteration_without_a_backward_pass_has_no_own_work(
    sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    clock = StepClock()
    times = DdpTimes(Model(), sent.reporter, clock=clock)
    with times.iteration(7, kind="evaluation"):
        clock.passes(2.0)
    [one] = sent.datagrams()
    assert (one.iteration_kind, one.iteration_s, one.own_s) == ("evaluation", 2.0, None)


def test_an_iteration_that_raises_is_not_reported(
    sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    times = DdpTimes(Model(), sent.reporter, clock=StepClock())
    with pytest.raises(KeyError), times.iteration(7):
        raise KeyError("of the training")
    times.end()
    assert sent.datagrams() == []


def test_times_of_a_gpu_are_reported_once_it_has_got_there(
    sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = GpuTime()
    engine, model = install(monkeypatch, stream), Model("cuda")
    times = DdpTimes(model, sent.reporter)

    def work(ms: float) -> None:
        stream.enqueued_ms += ms

    for step in (1, 2):
        with times.iteration(step):
            work(250)
            engine.backward(model, lambda: work(500))
    assert sent.datagrams() == []
    stream.reached_ms = 750
    times.flush()
    [one] = sent.datagrams()
    assert (one.step, one.iteration_s, one.own_s, one.wait_s) == (1, 0.75, 0.25, 0.5)
    assert one.delay_s is None


def test_iterations_that_a_gpu_never_reaches_are_lost(
    sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = GpuTime()
    install(monkeypatch, stream)
    times = DdpTimes(Model("cuda"), sent.reporter)
    for step in range(MOST_UNREAD + 5):
        stream.enqueued_ms += 10
        with times.iteration(step):
            pass
    assert sent.reporter.lost == 5


def test_pytorch_is_imported_when_the_hook_is_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError):
        DdpTimes(Model(), Reporter(environ={}))
