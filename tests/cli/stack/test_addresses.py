"""The addresses at which a stack is monitored."""

from __future__ import annotations

from typing import Any

from cli.stack.addresses import address_lines, monitoring_addresses
from infra.supervisor.running import RunningStack


def stack(traces: str) -> RunningStack:
    fields: dict[str, Any] = {"ports": {"gateway": {"metrics": 9100}}, "traces": traces}
    return RunningStack.model_construct(**fields)


def test_metrics_and_traces_have_an_address_each() -> None:
    assert monitoring_addresses(stack("http://127.0.0.1:9411/")) == {
        "metrics": "http://127.0.0.1:9100/",
        "traces": "http://127.0.0.1:9411/",
    }


def test_without_tracing_there_is_no_line_of_traces() -> None:
    assert address_lines(stack("")) == ["metrics   http://127.0.0.1:9100/"]
