"""Groups whose verb `list` may be left out, and errors as lines."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner, Result

from cli.app import BerthApp
from cli.main import app

GROUPS = ("nodes", "faults", "dead")


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words, env={"BERTH_URL": "http://127.0.0.1:9"})


@pytest.mark.parametrize("group", GROUPS)
def test_options_without_a_verb_are_those_of_the_list(group: str) -> None:
    assert run(group, "--limit", "0").exit_code == 2
    assert "Invalid value for '--limit'" in run(group, "--limit", "0").output
    assert "is not reachable" in str(run(group, "--limit", "7").exception)


@pytest.mark.parametrize("group", GROUPS)
def test_an_option_before_a_verb_is_an_error_and_not_dropped(group: str) -> None:
    refused = run(group, "--json", "list")
    assert refused.exit_code == 2
    assert "unexpected extra argument" in refused.output


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_has_a_help_of_its_own_and_no_unknown_verbs(group: str) -> None:
    assert "list" in run(group, "--help").output.split()
    assert "No such command 'nonsense'" in run(group, "nonsense").output


def test_a_group_of_errors_is_reported_as_its_first_one(capsys: pytest.CaptureFixture[str]) -> None:
    failing = BerthApp()

    @failing.command()
    def fail() -> None:
        raise ExceptionGroup("two tasks", [ExceptionGroup("one task", [OSError("no space")])])

    with pytest.raises(SystemExit):
        failing([])
    assert capsys.readouterr().err == "berth: OSError: no space\n"
