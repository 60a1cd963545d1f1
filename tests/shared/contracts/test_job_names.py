"""Programs by user and name, and digests of commands."""

from __future__ import annotations

import pytest

from shared.contracts.job_names import command_digest, name_pattern, program_of


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("Train-17", "train-#"), ("resnet50", "resnet#"), ("a1b2c3d4-eval", "#-eval"), ("x", "x")],
)
def test_numbers_and_hashes_are_no_part_of_a_pattern(name: str, pattern: str) -> None:
    assert name_pattern(name) == pattern


@pytest.mark.parametrize(
    ("user", "name", "program"),
    [
        ("ann", "Run-3", ("red", "ann", "run-#")),
        ("unknown", "Run-3", None),
        ("", "Run-3", None),
        ("ann", "", None),
    ],
)
def test_a_program_needs_a_user_and_a_name(
    user: str, name: str, program: tuple[str, str, str] | None
) -> None:
    assert program_of("red", user, name) == program


def test_commands_that_differ_in_numbers_alone_run_one_program() -> None:
    command = ("python", "train.py", "--seed=3", "--out=/runs/0f3a9b12")
    again = ("python", "train.py", "--seed=44", "--out=/runs/77c1d9e0aa")
    assert command_digest(command, "img:1") == command_digest(again, "img:2")
    others = [(command[:3], "img"), (("python", "eval.py", *command[2:]), "img"), (command, "two")]
    digests = {command_digest(argv, image) for argv, image in [(command, "img"), *others]}
    assert len(digests) == 4 and all(len(digest) == 8 for digest in digests)
    assert {name_pattern(digest) for digest in digests} == digests
    assert command_digest(("a", "b"), "") != command_digest(("ab",), "")


def test_a_job_without_a_command_has_no_digest_and_of_a_long_one_the_begin_counts() -> None:
    assert command_digest((), "") == ""
    assert command_digest((), "img") != ""
    long = ("run", *("--flag=" + "x" * 8000 for _ in range(255)))
    assert command_digest(long, "") == command_digest((*long[:64], "other"), "")
