"""A production file that is too long is a finding, unless it is exempt with need."""

from __future__ import annotations

import pytest

from infra.lint.__main__ import ROOT, findings
from infra.lint.length import EXEMPT, MOST_LINES, check
from infra.lint.source import Source, parse

MIGRATION = "shared/projections/migrations/versions/0001_read_models.py"


def with_lines(path: str, lines: int) -> Source:
    return parse(path, "x = 1\n" * lines)


def test_a_file_of_the_bound_is_no_finding_and_one_line_more_is() -> None:
    assert list(check([with_lines("cli/a.py", MOST_LINES)])) == []
    assert list(check([with_lines("cli/a.py", MOST_LINES + 1)])) == [
        "cli/a.py:301: 301 lines; the bound is 300"
    ]


def test_a_released_migration_and_a_test_may_be_longer() -> None:
    assert list(check([with_lines(MIGRATION, MOST_LINES + 1)])) == []
    long = with_lines("tests/cli/helpers.py", MOST_LINES + 1)
    assert [line for line in findings([long], {long.path}) if "bound" in line] == []


@pytest.mark.parametrize("path", EXEMPT)
def test_an_exemption_is_of_a_file_that_is_there_and_needs_it(path: str) -> None:
    assert (ROOT / path).is_file()
    assert list(check([with_lines(path, MOST_LINES + 1)])) == []
    assert list(check([with_lines(path, MOST_LINES)])) == [
        f"{path}:1: has 300 lines; remove it from EXEMPT"
    ]
