"""The agent between its session and its files: registrations, and the terms that they name."""

from __future__ import annotations

import errno
import signal
from functools import partial
from pathlib import Path

import pytest

from berth_agent.core.incarnation import Machine
from berth_agent.linux import files, processes
from berth_agent.messages import Order, Orders, Position, RegistrationReport, Terms, Welcome
from berth_agent.node.agent import Agent
from berth_agent.node.config import Config
from berth_agent.node.files.allocation import SPARE_MS, AllocationFolder
from berth_agent.node.files.folders import Folders
from berth_agent.node.incarnation_store import IncarnationStore
from berth_agent.node.launch.spare_step import SpareStep
from berth_agent.node.system.inventory import Inventory
from berth_agent.node.workers import Workers
from berth_agent.tokens import NodeTokens
from tests.agent.node_bench import a_deaf_process, launch
from tests.patience import PATIENCE_S

MACHINE = Machine("boot", "pid:[1]", "")


def an_agent(folder: Path, later: Machine = MACHINE) -> Agent:
    """Return an agent; `later` is the machine that it finds when it looks again."""
    config = Config(state=str(folder / "state"), run=str(folder / "run"), gpus=1, reserve_mib=0)
    tokens = partial(NodeTokens, "n1", "")
    spare = SpareStep(config.state, tokens)
    workers = Workers(config, tokens, Folders(config), lambda _: None, spare, Inventory(config))
    incarnations = IncarnationStore(config, MACHINE, lambda: "")

    def registration() -> RegistrationReport:
        return RegistrationReport(
            incarnation=incarnations.incarnation,
            boot_id="boot",
            pid_namespace="pid:[1]",
            hardware="",
            gpu_type="cpu",
            gpus=1,
            cpus=1.0,
            mem_gib=1.0,
            terms_id=incarnations.lease.terms.terms_id,
        )

    return Agent(config, "n1", incarnations, workers, registration, lambda: later)


def welcome(terms_id: str) -> Welcome:
    terms = Terms(
        terms_id=terms_id,
        stop_after_s=600.0,
        heartbeat_s=1.0,
        request_timeout_s=1.0,
        reconnect_s=1.0,
    )
    return Welcome(session_id="s", last_generation=0, terms=terms, action="register")


def test_a_registration_that_waits_keeps_the_terms_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session ends before the registration is sent, and the next one brings other terms."""
    monkeypatch.setattr(processes, "with_token", lambda *_: iter(()))
    agent = an_agent(tmp_path)
    for terms_id in ("t1", "t2"):
        assert agent.welcome(welcome(terms_id)) == "serve"
        agent.session_lost()
    _, reports = agent.batch()
    registrations = [report for report in reports if isinstance(report, RegistrationReport)]
    assert [report.terms_id for report in registrations] == ["t1", "t2"]
    agent.acknowledged(2)
    joined = Order(
        kind="joined", position=Position(seq=1, index=0), incarnation=agent.incarnations.uuid
    )
    agent.take_orders(Orders(orders=(joined,), through=joined.position))
    agent.tick()
    _, (applied,) = agent.batch()
    assert applied.to_json()["terms_id"] == "t2"


def test_a_new_incarnation_begins_when_nothing_of_the_older_one_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[R9] A step that is just being started counts as a worker that lives."""
    monkeypatch.setattr(processes, "with_token", lambda *_: iter(()))
    agent = an_agent(tmp_path)
    agent.welcome(welcome("t1"))
    agent.batch()
    first = agent.incarnations.uuid

    def take(kind: str, seq: int, **fields: object) -> None:
        position = {"seq": seq, "index": 0}
        values = {"kind": kind, "position": position, "incarnation": first, **fields}
        order = Order.from_json(values)
        agent.take_orders(Orders(orders=(order,), through=order.position))

    take("joined", 1)
    take("prepare", 2, allocation_id="0/5/0/0", launch=launch("true"))
    take("fence", 3)
    agent.acknowledged(1)
    agent.tick()
    assert agent.incarnations.uuid == first
    [allocation] = agent.workers
    agent.launched(allocation, None)
    agent.tick()
    _, (ended,) = agent.batch()
    assert ended.to_json()["allocation_id"] == "0/5/0/0"
    agent.acknowledged(2)
    agent.tick()
    assert agent.incarnations.incarnation.generation == 2


def test_the_first_lease_counts_from_the_first_sending_of_the_registration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[R3] A registration that is sent again extends nothing, and none is sent after the lease."""
    monkeypatch.setattr(processes, "with_token", lambda *_: iter(()))
    now_ms = [1_000]
    monkeypatch.setattr("berth_agent.node.agent.boot_ms", lambda: now_ms[0])
    agent = an_agent(tmp_path)
    assert agent.welcome(welcome("t1")) == "serve"
    for now_ms[0] in (5_000, 300_000, 604_999):
        assert len(agent.batch()[1]) == 1
        assert agent.incarnations.lease.deadline_ms == 605_000
    now_ms[0] = 605_000
    assert agent.batch()[1] == ()
    assert agent.heartbeat("s") is None


def test_a_hello_names_the_machine_as_it_is_now(tmp_path: Path) -> None:
    later = Machine("boot", "pid:[1]", "gpus", ("board and gpus",))
    agent = an_agent(tmp_path, later)
    assert agent.incarnations.machine == MACHINE
    hello = agent.hello()
    assert (hello.hardware, hello.former_hardware) == ("gpus", ("board and gpus",))
    assert agent.incarnations.machine == later


@pytest.mark.process
def test_a_disk_that_refuses_writes_puts_no_kill_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[R18] No tombstone can be written, as on a disk with errors."""
    monkeypatch.setattr(processes, "with_token", lambda *_: iter(()))
    now_ms = [1_000]
    monkeypatch.setattr("berth_agent.node.agent.boot_ms", lambda: now_ms[0])
    agent = an_agent(tmp_path)
    agent.welcome(welcome("t1"))
    agent.batch()
    joined = {"kind": "joined", "position": {"seq": 1, "index": 0}}
    prepare = {"kind": "prepare", "launch": launch("true"), "position": {"seq": 2, "index": 0}}
    for values in (
        joined,
        {**prepare, "allocation_id": "0/5/0/0"},
        {**prepare, "allocation_id": "0/5/0/1", "position": {"seq": 3, "index": 0}},
    ):
        order = Order.from_json({**values, "incarnation": agent.incarnations.uuid})
        agent.take_orders(Orders(orders=(order,), through=order.position))
    with a_deaf_process() as first, a_deaf_process() as second:
        for allocation, step in zip(agent.workers, (first, second), strict=True):
            ticks = processes.started_ticks(step.pid)
            state = {"phase": "running", "pid": step.pid, "ticks": ticks, "started": True}
            files.write_json(allocation.path("state.json"), state)
            agent.launched(allocation, None)
        agent.tick()

        def refuse(*_: object) -> bool:
            raise OSError(errno.EIO, "the disk does not answer")

        monkeypatch.setattr(AllocationFolder, "leave_tombstone", refuse)
        for step in (first, second):
            assert step.poll() is None
        now_ms[0] += 600_000 + SPARE_MS + 1
        for _ in range(2):
            with pytest.raises(OSError, match="does not answer"):
                agent.tick()
        for step in (first, second):
            assert step.wait(PATIENCE_S) == -signal.SIGKILL
        assert not any(allocation.fenced for allocation in agent.workers)
        monkeypatch.undo()
