"""The receiver keeps what its worker reports, whatever else arrives, within bounds."""

from __future__ import annotations

import json
import os
import select
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_agent import telemetry_receiver
from berth_agent.core.iteration_rows import MAX_ITERATIONS, IterationRows
from berth_agent.core.progress_meter import MeasuredProgress
from berth_agent.linux.clocks import boot_ms
from berth_agent.telemetry_receiver import (
    MAX_BYTES,
    MAX_PROCESSES,
    MAX_READS,
    Datagram,
    TelemetryReceiver,
    parse,
)
from shared.contracts import agents as contract

SECRET = "5ecret"
ALLOCATION = "0/7/1/5"


class Bench:
    """A receiver and a socket that sends to it."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "telemetry")
        self.receiver = TelemetryReceiver(self.path, SECRET, ALLOCATION)
        self.sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sender.setblocking(False)

    def send(self, iteration_s: Any, **changes: Any) -> None:
        fields = {"v": 1, "token": SECRET, "rank": 5, "step": 1, "iteration_s": iteration_s}
        self.send_bytes(json.dumps({**fields, **changes}).encode())

    def send_bytes(self, data: bytes) -> None:
        self.sender.sendto(data, self.path)

    def taken(self) -> tuple[float, ...]:
        """Return the iterations of the process of the lowest rank."""
        return next((seconds(rows) for rows in self.receiver.take_iterations().values()), ())


def seconds(rows: IterationRows) -> tuple[float, ...]:
    return rows.message(ALLOCATION, 5, 5).iteration_s


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.sender.close()
    bench.receiver.close()


def test_a_batch_is_a_message_of_the_contract(bench: Bench) -> None:
    bench.send(0.25)
    bench.send(0.5, own_s=0.2, wait_s=0.3, samples=64)
    taken = bench.receiver.take_iterations()
    assert list(taken) == [5]
    batch = taken[5].message(ALLOCATION, 5, 5)
    assert (batch.iteration_s, batch.own_s, batch.samples) == ((0.25, 0.5), (None, 0.2), (None, 64))
    contract.Iterations.model_validate(batch.to_json())
    assert bench.receiver.take_iterations() == {}


def test_the_descriptor_is_readable_when_there_is_something(bench: Bench) -> None:
    assert select.select([bench.receiver], [], [], 0)[0] == []
    bench.send(0.25)
    assert select.select([bench.receiver], [], [], 60)[0] == [bench.receiver]


@pytest.mark.parametrize(
    "changes",
    [
        {"token": "another"},
        {"token": ""},
        {"token": "\ud800"},
        {"v": 2},
        {"rank": -1},
        {"step": "one"},
        {"iteration_s": float("nan")},
        {"iteration_s": -0.5},
        {"iteration_s": 1e12},
        {"own_s": "none"},
        {"delay_s": -1},
        {"samples": 0.5},
        {"samples": 2**53},
        {"tokens": -1},
        {"step": 2**53},
        {"rank": 2**31},
        {"iteration_kind": "warm-up"},
        {"phases": {"forward": -1}},
        {"phases": {"Forward pass": 0.5}},
        {"phases": {f"p{number}": 0.5 for number in range(9)}},
        {"phases": [0.5]},
        {"layout": {"tp": 0.5}},
        {"layout": {"tp\n": 0}},
        {"layout": {f"a{number}": 0 for number in range(9)}},
        {"padding": "x" * MAX_BYTES},
    ],
)
def test_a_bad_datagram_is_dropped_and_the_next_is_read(
    bench: Bench, changes: dict[str, Any]
) -> None:
    bench.send(**{"iteration_s": 0.125, **changes})
    bench.send(0.25)
    assert bench.taken() == (0.25,)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[" * MAX_BYTES, b"{}", b"7", b"9" * MAX_BYTES])
def test_bytes_of_another_form_are_dropped(bench: Bench, data: bytes) -> None:
    bench.send_bytes(data)
    bench.send(0.25)
    assert bench.taken() == (0.25,)


@given(data=st.binary(max_size=2 * MAX_BYTES))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        assert isinstance(parse(data), Datagram)
    except ValueError as error:
        assert len(str(error)) < 1000


def test_only_the_newest_iterations_are_kept(bench: Bench) -> None:
    """They stay in the kernel or in the receiver until the agent asks; both are bounded."""
    total = 3 * MAX_ITERATIONS
    for number in range(total):
        bench.send(number)
        bench.receiver._keep(parse(bench.receiver._socket.recv(MAX_BYTES)))
    assert bench.taken() == tuple(range(total - MAX_ITERATIONS, total))


def test_one_call_reads_a_bounded_number(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker sends as fast as the agent reads."""
    receive = bench.receiver._socket.recv
    reads = 0

    class Flooded:
        def recv(self, size: int) -> bytes:
            nonlocal reads
            reads += 1
            bench.send(reads)
            return receive(size)

    monkeypatch.setattr(bench.receiver, "_socket", Flooded())
    assert len(bench.taken()) == MAX_ITERATIONS
    assert reads == MAX_READS
    monkeypatch.undo()


def test_processes_of_a_worker_are_kept_apart_and_the_lowest_rank_is_first(bench: Bench) -> None:
    bench.send(0.5, rank=9)
    bench.send(0.25, rank=8, layout={"tp": 0})
    bench.send(0.75, rank=9, layout={"tp": 1})
    taken = bench.receiver.take_iterations()
    assert {rank: seconds(rows) for rank, rows in taken.items()} == {8: (0.25,), 9: (0.5, 0.75)}
    assert list(taken) == [8, 9]
    assert taken[9].message(ALLOCATION, 5, 9).layout == {"tp": 1}


def test_a_worker_cannot_have_more_processes_than_are_kept(bench: Bench) -> None:
    for rank in reversed(range(2 * MAX_PROCESSES)):
        bench.send(0.5, rank=rank)
        bench.receiver._keep(parse(bench.receiver._socket.recv(MAX_BYTES)))
    assert list(bench.receiver.take_iterations()) == list(range(MAX_PROCESSES))


def test_the_socket_is_the_users_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        receiver = TelemetryReceiver(str(tmp_path / "telemetry"), SECRET, ALLOCATION, os.getuid())
        made = os.lstat(tmp_path / "telemetry")
    finally:
        os.umask(old)
    assert stat.S_ISSOCK(made.st_mode)
    assert (stat.S_IMODE(made.st_mode), made.st_uid) == (0o600, os.getuid())
    receiver.close()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, as the agent of several users")
def test_the_socket_may_belong_to_another_user(tmp_path: Path) -> None:
    receiver = TelemetryReceiver(str(tmp_path / "telemetry"), SECRET, ALLOCATION, 4711, 4712)
    made = os.lstat(tmp_path / "telemetry")
    assert (made.st_uid, made.st_gid, stat.S_IMODE(made.st_mode)) == (4711, 4712, 0o600)
    receiver.close()


def test_a_new_agent_takes_over_the_path(bench: Bench) -> None:
    bench.send(0.25)
    successor = TelemetryReceiver(bench.path, SECRET, ALLOCATION)
    bench.send(0.5)
    assert [seconds(rows) for rows in successor.take_iterations().values()] == [(0.5,)]
    successor.close()


def test_closing_removes_the_socket(bench: Bench) -> None:
    bench.receiver.close()
    assert not os.path.lexists(bench.path)
    with pytest.raises(FileNotFoundError):
        bench.send(0.25)


@pytest.mark.parametrize(
    ("name", "token", "allocation_id", "error"),
    [
        ("x" * 200, SECRET, ALLOCATION, OSError),
        ("absent/telemetry", SECRET, ALLOCATION, OSError),
        ("telemetry", "", ALLOCATION, ValueError),
        ("telemetry", SECRET, "no rank", ValueError),
    ],
)
def test_a_receiver_that_cannot_be_is_refused(
    tmp_path: Path, name: str, token: str, allocation_id: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        TelemetryReceiver(str(tmp_path / name), token, allocation_id)


def send_checkpoint(bench: Bench, step: Any = 7, **changes: Any) -> None:
    fields = {"kind": "checkpoint", "v": 1, "token": SECRET, "rank": 5, "step": step}
    bench.send_bytes(json.dumps({**fields, **changes}).encode())


def test_the_last_checkpoint_is_kept_with_the_time_of_the_node(bench: Bench) -> None:
    bench.send(0.25)
    send_checkpoint(bench, 7)
    send_checkpoint(bench, 8, ran_ms=-(10**9))
    before_ms = boot_ms()
    assert bench.taken() == (0.25,)
    written = bench.receiver.take_checkpoint()
    assert written is not None and written.step == 8
    assert before_ms <= written.at_boot_ms <= boot_ms(), "whatever time the worker names"
    assert bench.receiver.take_checkpoint() is None


@pytest.mark.parametrize(
    "changes",
    [
        {"token": "another"},
        {"rank": 6},
        {"rank": -1},
        {"step": -1},
        {"step": 2**53},
        {"step": "seven"},
        {"v": 2},
        {"kind": ["checkpoint"]},
    ],
)
def test_a_checkpoint_of_another_form_or_of_a_higher_rank_is_dropped(
    bench: Bench, changes: dict[str, Any]
) -> None:
    bench.send(0.25, rank=5)
    send_checkpoint(bench, **changes)
    assert bench.taken() == (0.25,)
    assert bench.receiver.take_checkpoint() is None


def test_a_lower_rank_replaces_the_checkpoint_of_a_higher_one(bench: Bench) -> None:
    send_checkpoint(bench, 9, rank=6)
    bench.send(0.25, rank=5)
    assert bench.taken() == (0.25,) and bench.receiver.take_checkpoint() is None


def test_the_progress_of_a_worker_that_names_a_total_is_measured_by_the_node(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = [50_000]
    monkeypatch.setattr(telemetry_receiver, "boot_ms", lambda: now_ms[0])
    for step in (10, 20):
        send_iteration(bench, step)
        assert bench.taken() == (0.25,)
        now_ms[0] += 20_000
    assert bench.receiver.progress() == MeasuredProgress(20, 100, 2.0, 70_000), "it claims 0.25 s"
    send_iteration(bench, 30, rank=4)
    assert bench.taken() == (0.25,) and bench.receiver.progress() is None, "a lower rank counts"


@pytest.mark.parametrize("changes", [{"steps_total": 0}, {"steps_total": 2**53}, {"token": "b"}])
def test_an_iteration_with_a_bad_total_is_dropped(bench: Bench, changes: dict[str, Any]) -> None:
    send_iteration(bench, 1, **changes)
    assert bench.taken() == ()


def send_iteration(bench: Bench, step: int, **changes: Any) -> None:
    fields = {"v": 1, "token": SECRET, "rank": 5, "step": step, "iteration_s": 0.25}
    bench.send_bytes(json.dumps({**fields, "steps_total": 100, **changes}).encode())
