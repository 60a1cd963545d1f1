"""The callback reports batches from end to end, and evaluations as iterations of another kind."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from berth_reporter import Reporter, lightning
from berth_reporter.lightning import MODULES
from tests.reporter.sent import Sent, sent_fixture
from tests.reporter.torch_double import Model, install

sent = sent_fixture


@pytest.fixture(params=MODULES)
def installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either name of the library, of which the callback needs the base class alone."""
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, None)
    module = ModuleType(request.param)
    module.Callback = type("Callback", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, request.param, module)
    if "." in request.param:
        monkeypatch.setitem(sys.modules, request.param.partition(".")[0], ModuleType("parent"))


def a_trainer(model: Any) -> SimpleNamespace:
    return SimpleNamespace(
        global_step=0,
        max_steps=10,
        accumulate_grad_batches=1,
        strategy=SimpleNamespace(model=model),
        callback=None,
    )


def batches(callback: Any, trainer: SimpleNamespace, count: int) -> None:
    for _ in range(count):
        batch(callback, trainer)


def batch(callback: Any, trainer: SimpleNamespace, *, steps: bool = True) -> None:
    callback.on_train_batch_start(trainer, None, None, 0)
    trainer.global_step += steps
    callback.on_train_batch_end(trainer, None, None, None, 0)


def test_batches_are_reported_without_ddp(installed: None, sent: Sent) -> None:
    callback, trainer = lightning.callback(sent.reporter, samples=32), a_trainer(object())
    callback.on_train_start(trainer, None)
    batches(callback, trainer, 2)
    read = sent.datagrams()
    assert [(one.step, one.samples, one.steps_total) for one in read] == [(1, 32, 10), (2, 32, 10)]


def test_an_evaluation_between_batches_is_none_of_them(installed: None, sent: Sent) -> None:
    callback, trainer = lightning.callback(sent.reporter), a_trainer(object())
    callback.on_train_start(trainer, None)
    batches(callback, trainer, 1)
    callback.on_validation_start(trainer, None)
    callback.on_validation_end(trainer, None)
    batches(callback, trainer, 1)
    kinds = [(one.step, one.iteration_kind) for one in sent.datagrams()]
    assert kinds == [(1, "train"), (1, "evaluation"), (2, "train")]


@pytest.mark.parametrize("model", [object(), None], ids=["whole", "ddp"])
def test_batches_that_accumulate_gradients_are_one_iteration(
    installed: None, sent: Sent, monkeypatch: pytest.MonkeyPatch, model: Any
) -> None:
    install(monkeypatch)
    callback, trainer = lightning.callback(sent.reporter, samples=32), a_trainer(model or Model())
    trainer.accumulate_grad_batches = 3
    callback.on_train_start(trainer, None)
    for steps in (False, False, True, False, True):  # the last step of an epoch has two batches
        batch(callback, trainer, steps=steps)
    assert [(one.step, one.samples) for one in sent.datagrams()] == [(1, 96), (2, 64)]


def test_a_training_with_steps_that_the_trainer_does_not_count_is_reported(
    installed: None, sent: Sent
) -> None:
    """Of an optimizer that the program steps by itself `global_step` stays 0."""
    callback, trainer = lightning.callback(sent.reporter), a_trainer(object())
    callback.on_train_start(trainer, None)
    for _ in range(2):
        batch(callback, trainer, steps=False)
    assert len(sent.datagrams()) == 2


def test_a_ddp_model_reports_own_work(
    installed: None, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, model = install(monkeypatch), Model()
    callback, trainer = lightning.callback(sent.reporter), a_trainer(model)
    callback.on_train_start(trainer, None)
    callback.on_train_batch_start(trainer, None, None, 0)
    engine.backward(model, lambda: None)
    trainer.global_step += 1
    callback.on_train_batch_end(trainer, None, None, None, 0)
    [one] = sent.datagrams()
    assert (one.step, one.steps_total) == (1, 10)
    assert one.own_s is not None and one.wait_s is not None
    assert one.own_s + one.wait_s <= one.iteration_s + 1e-6


def test_a_model_with_a_hook_of_its_own_is_timed_as_a_whole(installed: None, sent: Sent) -> None:
    class Hooked(Model):
        def register_comm_hook(self, state: Any, hook: Any) -> None:
            raise RuntimeError("register_comm_hook can only be called once")

    callback, trainer = lightning.callback(sent.reporter), a_trainer(Hooked())
    callback.on_train_start(trainer, None)
    batches(callback, trainer, 1)
    [one] = sent.datagrams()
    assert one.own_s is None


def test_without_lightning_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match="PyTorch Lightning is not installed"):
        lightning.callback(Reporter(environ={}))
