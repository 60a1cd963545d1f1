"""Reasons of failures and their advice."""

from __future__ import annotations

from shared.contracts.failures import ADVICE, LOST_BY_NODE, advice


def test_every_reason_that_the_node_caused_has_advice() -> None:
    assert ADVICE.keys() >= LOST_BY_NODE
    assert all(text and len(text) <= 90 for text in ADVICE.values())


def test_a_command_that_is_missing_is_brought_or_named_otherwise() -> None:
    python, script, program = (
        advice("command_missing", detail=detail)
        for detail in ("python: not in PATH", "./train.sh: not in /work", "/opt/x: not there")
    )
    assert "`python3`" in python and "--upload DIR" in script
    assert program == ADVICE["command_missing"]


def test_an_unknown_reason_has_no_advice() -> None:
    assert advice("disk_gone") == ""


def test_a_missing_file_is_looked_for_in_the_output_of_a_program_alone() -> None:
    line = "cat: data.csv: No such file or directory"
    assert "`--workdir DIR`" in advice("exit_code", ["one", line])
    assert advice("exit_code", ["one"]) == ADVICE["exit_code"]
    assert advice("prolog_failed", [line]) == ADVICE["prolog_failed"]
