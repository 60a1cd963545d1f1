"""Refusals of `berth up`, before it starts anything."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.commands.stack import FIRST_STEPS, is_new, loses_jobs
from cli.errors import BadInput, Refused
from cli.main import app
from infra.machine.folders import make_own
from infra.supervisor import control
from infra.supervisor.running import load
from tests.docs.test_commands import parse
from tests.infra.supervisor.test_data_folder import ended_stack


@pytest.fixture
def taken() -> Iterator[str]:
    """Return an address at which a server listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """Return a data folder with a supervisor that listens."""
    path = control.socket_path(tmp_path.resolve())
    make_own(path.parent, 0o700)
    with socket.socket(socket.AF_UNIX) as supervisor:
        supervisor.bind(str(path))
        supervisor.listen()
        yield tmp_path
    path.unlink()


def refused(*words: str) -> BaseException | None:
    return CliRunner().invoke(app, ["up", *words]).exception


def test_a_stack_that_runs_in_the_folder_is_named_before_its_ports(
    running: Path, taken: str
) -> None:
    error = refused("--data", str(running), "--listen", taken)
    assert isinstance(error, Refused)
    assert f"a stack is already running in {running}" in str(error)


def test_an_address_in_use_is_named(tmp_path: Path, taken: str) -> None:
    error = refused("--data", str(tmp_path), "--listen", taken)
    assert isinstance(error, BadInput)
    assert "cannot listen at 127.0.0.1" in str(error)


def test_the_folder_of_a_durable_stack_is_not_taken_by_an_embedded_one(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    error = refused("--data", str(tmp_path))
    assert isinstance(error, Refused)
    assert "berth up --broker kafka" in str(error)


def test_the_help_states_that_an_embedded_stack_keeps_nothing() -> None:
    shown = " ".join(CliRunner().invoke(app, ["up", "--help"]).stdout.split())
    assert "With the embedded broker, the default, everything is lost when the stack stops" in shown


def test_only_a_live_embedded_stack_loses_its_jobs_at_a_stop(tmp_path: Path) -> None:
    ended_stack(tmp_path, "embedded")
    stack = load(tmp_path)
    assert loses_jobs(stack)
    assert not loses_jobs(stack.model_copy(update={"recorded": "DIR"}))
    assert not loses_jobs(stack.model_copy(update={"broker": "kafka"}))


def test_only_a_stack_without_a_past_is_new(tmp_path: Path) -> None:
    ended_stack(tmp_path, "embedded")
    stack = load(tmp_path)
    assert is_new(stack, had_key=False)
    assert is_new(stack, had_key=True)  # the key of an embedded broker that has ended
    durable = stack.model_copy(update={"broker": "kafka"})
    assert is_new(durable, had_key=False)
    assert not is_new(durable, had_key=True)


def test_the_first_steps_name_verbs_that_exist() -> None:
    for line in FIRST_STEPS:
        parse(shlex.split(line.removeprefix("next"))[1:])


def test_every_command_that_needs_a_stack_names_the_one_that_starts_it(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    absent = f"no stack is running in {tmp_path}; `berth up` starts one"
    assert absent in output_of("status", *data)
    assert "no stack was ever started" in output_of("restart", *data)
    assert "`berth up`" in output_of("jobs", *data)
    ended_stack(tmp_path, "embedded")
    assert f"no stack is running in {tmp_path}; `berth up` starts one" in output_of(
        "restart", *data
    )
    assert f"the stack in {tmp_path}, `berth up` starts one" in output_of("jobs", *data)


def output_of(*words: str) -> str:
    """Return the output of a command, with the text of its error."""
    ran = CliRunner().invoke(app, [*words])
    return f"{ran.output}{ran.exception}"
