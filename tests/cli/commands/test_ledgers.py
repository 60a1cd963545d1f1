"""Refusals of `berth ledgers`; what it does is executed by tests/operations/test_archive.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.errors import BadInput, Refused
from cli.main import app
from infra.supervisor.running import Broker
from tests.infra.supervisor.test_archive_folder import known


def refused(data: Path, *words: str) -> BaseException | None:
    return CliRunner().invoke(app, ["ledgers", *words, "--data", str(data)]).exception


@pytest.mark.parametrize("verb", ["status", "archive", "trim"])
@pytest.mark.parametrize(
    ("broker", "reason"), [("embedded", "cannot remove records"), ("kafka", "--archive FOLDER")]
)
def test_a_stack_without_an_archive_is_refused(
    tmp_path: Path, verb: str, broker: Broker, reason: str
) -> None:
    known(tmp_path, "", broker)
    error = refused(tmp_path, verb)
    assert isinstance(error, Refused)
    assert reason in str(error)


def test_a_topic_that_is_never_archived_is_named(tmp_path: Path) -> None:
    known(tmp_path, str(tmp_path / "archive"))
    error = refused(tmp_path, "trim", "--topic", "llm.requests")
    assert isinstance(error, BadInput)
    assert "--topic llm.requests: is not archived" in str(error)


def test_an_embedded_stack_is_given_no_archive(tmp_path: Path) -> None:
    words = ["up", "--data", str(tmp_path), "--archive", str(tmp_path / "archive")]
    error = CliRunner().invoke(app, words).exception
    assert isinstance(error, BadInput)
    assert "--archive" in str(error)
