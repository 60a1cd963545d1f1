"""The reporter sends what the agent reads, never waits, and never raises into a training loop."""

from __future__ import annotations

import ast
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import berth_reporter
from berth_agent.telemetry_receiver import CheckpointDatagram, Datagram, TelemetryReceiver, parse
from berth_reporter import Reporter, datagram, reporter

SECRET = "5ecret"
PACKAGE = Path(berth_reporter.__file__).parent


class Receiver:
    """A socket and the variables that name it."""

    def __init__(self, path: Path) -> None:
        self.environ = {"BERTH_TELEMETRY": str(path), "BERTH_TELEMETRY_TOKEN": SECRET, "RANK": "3"}
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(str(path))

    def received(self) -> list[bytes]:
        datagrams = []
        while True:
            try:
                datagrams.append(self.socket.recv(65536))
            except BlockingIOError:
                return datagrams

    def one(self) -> Datagram:
        [data] = self.received()
        parsed = parse(data)
        assert isinstance(parsed, Datagram)
        return parsed


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(tmp_path / "telemetry")
    yield receiver
    receiver.socket.close()


def test_all_fields_arrive(receiver: Receiver) -> None:
    sender = Reporter(environ=receiver.environ)
    sender.report(17, 0.0512, own_s=0.032, wait_s=0.0192, samples=256)
    assert receiver.one() == Datagram(
        v=1,
        token=SECRET,
        rank=3,
        step=17,
        iteration_s=0.0512,
        own_s=0.032,
        wait_s=0.0192,
        samples=256,
    )
    assert sender.lost == 0
    sender.close()


def test_what_is_optional_is_left_out(receiver: Receiver) -> None:
    sender = Reporter(rank=0, environ=receiver.environ)
    sender.report(0, 2)
    [data] = receiver.received()
    fields = {"v": 1, "token": SECRET, "rank": 0, "step": 0, "iteration_s": 2}
    assert json.loads(data) == fields
    sender.close()


def test_the_body_of_an_iteration_is_measured(receiver: Receiver) -> None:
    sender = Reporter(environ=receiver.environ)
    with sender.iteration(5, samples=8) as iteration:
        iteration.own_s = 0.25
        iteration.wait_s = 0.5
    sent = receiver.one()
    assert (sent.step, sent.samples, sent.own_s, sent.wait_s) == (5, 8, 0.25, 0.5)
    assert 0 < sent.iteration_s < 60
    sender.close()


def test_work_kind_phases_and_layout_arrive(receiver: Receiver) -> None:
    layout = {"tp": 0, "dp": 3, "pp": 1}
    sender = Reporter(environ=receiver.environ, layout=layout, microbatches=16, activations=6)
    with sender.iteration(5, tokens=4096) as iteration:
        with iteration.phase("forward"):
            pass
        iteration.add("comm.dp", 0.25)
        iteration.add("comm.dp", 0.5)
    sent = receiver.one()
    assert (sent.tokens, sent.iteration_kind) == (4096, "train")
    assert (sent.layout, sent.microbatches, sent.activations) == (layout, 16, 6)
    assert sent.phases["comm.dp"] == 0.75 and 0 <= sent.phases["forward"] < 60
    sender.report(6, 0.5, kind="evaluation", phases={"forward": 0.125})
    sent = receiver.one()
    assert (sent.iteration_kind, sent.phases) == ("evaluation", {"forward": 0.125})
    sender.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "warm-up"},
        {"phases": {"Forward": 0.5}},
        {"phases": {7: 0.5}},
        {"phases": {"forward": -1.0}},
        {"phases": {f"p{number}": 0.5 for number in range(9)}},
        {"phases": 0.5},
        {"tokens": "many"},
    ],
)
def test_a_field_that_the_agent_would_drop_is_lost(
    receiver: Receiver, fields: dict[str, Any]
) -> None:
    sender = Reporter(environ=receiver.environ)
    sender.report(1, 0.5, **fields)
    assert (receiver.received(), sender.lost) == ([], 1)
    sender.close()


@pytest.mark.parametrize("layout", [{"TP": 0}, {"tp": "first"}, 7])
def test_a_layout_that_is_none_turns_the_reporter_off(receiver: Receiver, layout: Any) -> None:
    sender = Reporter(environ=receiver.environ, layout=layout)
    sender.report(1, 0.5)
    assert receiver.received() == []


def test_an_iteration_that_raises_is_not_reported(receiver: Receiver) -> None:
    sender = Reporter(environ=receiver.environ)
    with pytest.raises(KeyError), sender.iteration(5):
        raise KeyError("of the training")
    assert receiver.received() == []
    sender.close()


def test_the_function_reports_by_the_environment(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in receiver.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(reporter, "_default", None)
    berth_reporter.report(1, 0.5)
    first = reporter._default
    berth_reporter.report(2, 0.5, samples=4)
    assert first is not None and reporter._default is first
    assert [parse(data).step for data in receiver.received()] == [1, 2]
    first.close()


def test_an_iteration_names_the_total_of_the_training(receiver: Receiver) -> None:
    sender = Reporter(environ=receiver.environ)
    sender.report(7, 0.5, steps_total=100)
    with sender.iteration(8, steps_total=100):
        pass
    sent = [parse(data) for data in receiver.received()]
    assert [(one.step, getattr(one, "steps_total", 0)) for one in sent] == [(7, 100), (8, 100)]
    sender.close()


def test_a_checkpoint_is_a_datagram_of_its_own(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in receiver.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(reporter, "_default", None)
    berth_reporter.checkpoint(7)
    berth_reporter.checkpoint(8)
    assert [parse(data) for data in receiver.received()] == [
        CheckpointDatagram(v=1, token=SECRET, rank=3, step=7),
        CheckpointDatagram(v=1, token=SECRET, rank=3, step=8),
    ]
    assert reporter._default is not None
    reporter._default.close()


def test_a_checkpoint_waits_for_nothing_and_raises_nothing(receiver: Receiver) -> None:
    sender = Reporter(environ=receiver.environ)
    bad: list[Any] = ["seven", None, float("nan"), object()]
    for value in bad:
        sender.checkpoint(value)
    assert (receiver.received(), sender.lost) == ([], len(bad))
    for step in range(10_000):
        sender.checkpoint(step)
    assert sender.lost > len(bad), "the socket was full"
    sender.close()
    Reporter(environ={}).checkpoint(1)


@pytest.mark.parametrize("missing", ["BERTH_TELEMETRY", "BERTH_TELEMETRY_TOKEN"])
def test_without_a_variable_nothing_is_sent(receiver: Receiver, missing: str) -> None:
    sender = Reporter(environ={**receiver.environ, missing: ""})
    sender.report(1, 0.5)
    assert (receiver.received(), sender.lost) == ([], 0)


@pytest.mark.parametrize("rank", ["three", "1.5"])
def test_a_rank_that_is_none_turns_the_reporter_off(receiver: Receiver, rank: str) -> None:
    sender = Reporter(environ={**receiver.environ, "RANK": rank})
    sender.report(1, 0.5)
    assert receiver.received() == []


def test_a_full_socket_loses_instead_of_waiting(receiver: Receiver) -> None:
    sender = Reporter(environ=receiver.environ)
    sent = 10_000
    for step in range(sent):
        sender.report(step, 0.5)
    steps = [parse(data).step for data in receiver.received()]
    assert steps == list(range(len(steps)))
    assert 0 < len(steps) == sent - sender.lost < sent
    sender.close()


def test_a_reporter_survives_the_agent(tmp_path: Path) -> None:
    """The socket goes and comes back at the same path, as in an upgrade of the agent."""
    path = str(tmp_path / "telemetry")
    environ = {"BERTH_TELEMETRY": path, "BERTH_TELEMETRY_TOKEN": SECRET}
    sender = Reporter(environ=environ)
    sender.report(0, 0.5)
    for step in (1, 2):
        receiver = TelemetryReceiver(path, SECRET, "0/7/0/0")
        sender.report(step, step / 4)
        [rows] = receiver.take_iterations().values()
        assert rows.message("0/7/0/0", 0, 0).iteration_s == (step / 4,)
        receiver.close()
    sender.report(3, 0.5)
    assert sender.lost == 2
    sender.close()


BAD: list[Any] = [float("nan"), float("inf"), -1.0, 1e10, None, "fast", 10**400, object()]


@pytest.mark.parametrize("value", BAD)
def test_a_value_that_is_no_time_is_lost(receiver: Receiver, value: Any) -> None:
    sender = Reporter(environ=receiver.environ)
    sender.report(1, value)
    assert (receiver.received(), sender.lost) == ([], 1)
    sender.close()


def test_a_datagram_is_never_longer_than_the_agent_reads(receiver: Receiver) -> None:
    sender = Reporter(environ=receiver.environ)
    sender.report(10**1000, 0.5)
    sender.report(10**900, 0.5)
    [data] = receiver.received()
    assert len(data) <= datagram.MAX_BYTES
    assert sender.lost == 1
    sender.close()


def test_a_path_that_no_socket_can_have_is_lost() -> None:
    environ = {"BERTH_TELEMETRY": "/tmp/" + "x" * 200, "BERTH_TELEMETRY_TOKEN": SECRET}
    sender = Reporter(environ=environ)
    sender.report(1, 0.5)
    assert sender.lost == 1
    sender.close()
    sender.report(2, 0.5)
    assert sender.lost == 1


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_the_source_is_that_of_the_oldest_python(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 9))
