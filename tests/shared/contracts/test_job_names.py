"""Programs: what jobs of one user and name run."""

from __future__ import annotations

import pytest

from shared.contracts.job_names import name_pattern, program_of


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
