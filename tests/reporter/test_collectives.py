"""Calls of `torch.distributed` are waiting, also those that are waited for later."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from berth_agent.telemetry_receiver import Datagram
from berth_reporter.collectives import CollectiveTimes
from berth_reporter.unread import MOST_UNREAD
from tests.e2e.test_training import PYTHON, missing
from tests.patience import PATIENCE_S
from tests.reporter.sent import Sent, sent_fixture
from tests.reporter.test_pytorch import StepClock
from tests.reporter.test_pytorch_ranks import ROOT, free_port
from tests.reporter.torch_double import GpuTime, install

sent = sent_fixture

PIPELINE = textwrap.dedent("""
    import os, time
    import torch
    import torch.distributed as dist
    from berth_reporter.collectives import CollectiveTimes

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    times = CollectiveTimes()
    block = torch.ones(1024)
    for step in range(20):
        with times.iteration(step, samples=1):
            if rank == 0:
                time.sleep(0.06)
                dist.isend(block, 1).wait()
                dist.recv(block, 1)
            else:
                dist.recv(block, 0)
                time.sleep(0.01)
                dist.send(block, 0)
        gathered = [torch.ones(1) for _ in range(2)]
        dist.all_gather(gathered, torch.ones(1))
    times.close()
    dist.destroy_process_group()
""")


class Work:
    """A call that was begun; its end takes s of the clock."""

    def __init__(self, clock: StepClock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self.is_done = False

    def wait(self) -> bool:
        self._clock.passes(self._seconds)
        self.is_done = True
        return True


@pytest.fixture(name="clock")
def clock_fixture(monkeypatch: pytest.MonkeyPatch) -> Iterator[StepClock]:
    """A clock, and functions of a `torch.distributed` that take its time."""
    clock, dist = StepClock(), ModuleType("torch.distributed")

    def recv(tensor: object, src: int) -> int:
        clock.passes(2.0)
        return src

    def barrier() -> None:
        clock.passes(0.25)

    def all_reduce(tensor: object) -> None:
        clock.passes(1.0)
        dist.barrier()

    functions: dict[str, Any] = {
        "recv": recv,
        "barrier": barrier,
        "all_reduce": all_reduce,
        "irecv": lambda tensor: Work(clock, 4.0),
        "batch_isend_irecv": lambda operations: [Work(clock, 0.5) for _ in operations],
    }
    for name, function in functions.items():
        setattr(dist, name, function)
    monkeypatch.setitem(sys.modules, "torch.distributed", dist)
    yield clock


def test_calls_and_their_waits_are_waiting_and_the_rest_is_own_work(
    sent: Sent, clock: StepClock
) -> None:
    dist: Any = sys.modules["torch.distributed"]
    times = CollectiveTimes(sent.reporter, clock=clock)
    with times.iteration(3, samples=8, steps_total=9):
        work = dist.irecv("grads")
        clock.passes(1.5)
        assert dist.recv("activations", src=1) == 1
        assert work.wait() is True and work.is_done
        for one in dist.batch_isend_irecv(["a", "b"]):
            one.wait()
    [one] = sent.datagrams()
    assert (one.step, one.samples, one.steps_total) == (3, 8, 9)
    assert (one.iteration_s, one.own_s, one.wait_s) == (8.5, 1.5, 7.0)
    assert one.phases == {"comm.p2p": 7.0}


def test_a_call_within_a_call_counts_once_and_none_counts_between_iterations(
    sent: Sent, clock: StepClock
) -> None:
    dist: Any = sys.modules["torch.distributed"]
    times = CollectiveTimes(sent.reporter, clock=clock)
    dist.all_reduce("x")
    with times.iteration(0):
        dist.all_reduce("x")
        clock.passes(1.0)
    with pytest.raises(RuntimeError), times.iteration(1):
        raise RuntimeError
    [one] = sent.datagrams()
    assert (one.own_s, one.wait_s) == (1.0, 1.25)


def test_the_functions_are_given_back(sent: Sent, clock: StepClock) -> None:
    dist: Any = sys.modules["torch.distributed"]
    before = dict(vars(dist))
    times = CollectiveTimes(sent.reporter, clock=clock)
    assert dist.recv is not before["recv"]
    times.close()
    assert dict(vars(dist)) == before


def test_times_of_a_gpu_are_reported_once_it_has_got_there(
    sent: Sent, clock: StepClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = GpuTime()
    dist: Any = sys.modules["torch.distributed"]
    install(monkeypatch, stream)
    dist.recv = lambda tensor: setattr(stream, "enqueued_ms", stream.enqueued_ms + 500)
    times = CollectiveTimes(sent.reporter, on_gpu=True)
    for step in range(MOST_UNREAD + 2):
        with times.iteration(step):
            stream.enqueued_ms += 250
            dist.recv("x")
    assert sent.datagrams() == [] and sent.reporter.lost == 2
    stream.reached_ms = 3 * 750
    times.flush()
    [one] = sent.datagrams()
    assert (one.step, one.iteration_s, one.own_s, one.wait_s) == (2, 0.75, 0.25, 0.5)


@pytest.mark.parts
@pytest.mark.process
def test_a_pipeline_of_two_ranks_shows_who_waits_for_whom(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    port = free_port()
    read: list[list[Datagram]] = [[], []]
    with ExitStack() as stack:
        receivers = [stack.enter_context(closing(Sent(tmp_path / f"r{rank}"))) for rank in (0, 1)]
        processes = []
        for rank, receiver in enumerate(receivers):
            gang = {
                "RANK": str(rank),
                "WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "GLOO_SOCKET_IFNAME": "lo",
                "PYTHONPATH": str(ROOT / "reporter"),
            }
            environment = {**os.environ, **gang, **receiver.environ}
            assert PYTHON is not None
            processes.append(subprocess.Popen([PYTHON, "-c", PIPELINE], env=environment))
        while any(process.poll() is None for process in processes):
            for kept, receiver in zip(read, receivers, strict=True):
                kept += receiver.datagrams()
            time.sleep(0.01)
        assert [process.wait(PATIENCE_S) for process in processes] == [0, 0]
        for kept, receiver in zip(read, receivers, strict=True):
            kept += receiver.datagrams()
    own = [sorted(one.own_s or 0.0 for one in kept)[len(kept) // 2] for kept in read]
    assert all(len(kept) == 20 for kept in read)
    assert own[0] > own[1], "the first stage works longer, and the second one waits for it"
    for one in read[0] + read[1]:
        assert (one.own_s or 0.0) + (one.wait_s or 0.0) == pytest.approx(one.iteration_s, rel=0.01)
        assert set(one.phases) == {"comm.p2p"}
