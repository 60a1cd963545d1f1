"""The closed lists against the contracts they speak of."""

from __future__ import annotations

import importlib
import pkgutil
from typing import get_args

import shared.contracts
from shared.contracts.base import EVENTS
from shared.telemetry.names import (
    LATER_EVENTS,
    START_EVENTS,
    LaterSpan,
    StartSpan,
    continues_trace,
    span_of,
)


def wire_names() -> set[str]:
    for module in pkgutil.iter_modules(shared.contracts.__path__):
        importlib.import_module(f"shared.contracts.{module.name}")
    return {wire_type.rpartition(".v")[0] for wire_type in EVENTS}


def test_every_event_with_a_span_exists() -> None:
    assert {*START_EVENTS, *LATER_EVENTS} <= wire_names()


def test_an_event_is_either_of_the_start_or_later() -> None:
    assert not set(START_EVENTS) & set(LATER_EVENTS)
    assert not set(get_args(StartSpan)) & set(get_args(LaterSpan))


def test_a_new_version_keeps_its_span() -> None:
    assert span_of("job.placed.v1") == span_of("job.placed.v12") == "place"
    assert continues_trace("job.placed.v2")


def test_an_unknown_event_is_a_decision_of_its_own_trace() -> None:
    assert span_of("moon.risen.v1") == "decide"
    assert not continues_trace("moon.risen.v1")
