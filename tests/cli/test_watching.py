"""The addresses that a started stack is watched at."""

from __future__ import annotations

from cli.watching import watched, watching
from infra.supervisor.running import RunningStack


def stack(traces: str) -> RunningStack:
    return RunningStack.model_construct(ports={"gateway": {"metrics": 9100}}, traces=traces)


def test_metrics_and_traces_have_an_address_each() -> None:
    assert watched(stack("http://127.0.0.1:9411/")) == {
        "metrics": "http://127.0.0.1:9100/",
        "traces": "http://127.0.0.1:9411/",
    }


def test_without_tracing_there_is_no_line_of_traces() -> None:
    assert watching(stack("")) == ["metrics   http://127.0.0.1:9100/"]
