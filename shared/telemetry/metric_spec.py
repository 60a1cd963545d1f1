"""The description of a metric in the list of all."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]
Group = Literal[
    "process",
    "bus",
    "admission",
    "priority",
    "placement",
    "failslow",
    "throttle",
    "executor",
    "gateway",
    "notifier",
]


class Spec(NamedTuple):
    """Kind, text and labels of a metric; `group` is `process`, `bus` or its only service."""

    kind: Kind
    group: Group
    text: str
    labels: tuple[str, ...] = ()
