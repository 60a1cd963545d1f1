"""Cells, tables and lines as they are printed to a pipe."""

from __future__ import annotations

import json

import pytest

from cli.text.output import emit, lines, report_line, table, text_of, working


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "-"),
        ("", "-"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (2.50, "2.5"),
        (["a", None, 1.0], "a, -, 1"),
        ([], "-"),
        ("red\x1b[31m\n", "red?[31m?"),
    ],
)
def test_a_cell_is_one_line_of_printable_text(cell: object, text: str) -> None:
    assert text_of(cell) == text


def test_a_table_in_a_pipe_has_no_frame_and_no_trailing_blanks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table(("job", "phase"), [("j1", "running"), ("a-long-name", None)])
    assert capsys.readouterr().out.splitlines() == [
        "job          phase",
        "j1           running",
        "a-long-name  -",
    ]


def test_a_long_cell_is_not_wrapped_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    table(("name",), [("x" * 500,)])
    assert capsys.readouterr().out == f"name\n{'x' * 500}\n"


def test_a_table_without_rows_prints_that_it_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    table(("job",), [], empty="no jobs")
    assert capsys.readouterr().out == "no jobs\n"


def test_progress_goes_to_stderr_and_the_document_to_stdout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report_line("reading")
    with working("verifying", silent=False) as progress:
        progress("half")
    emit({"jobs": 2})
    printed = capsys.readouterr()
    assert printed.err == "reading\n"
    assert json.loads(printed.out) == {"jobs": 2}


def test_no_line_holds_a_character_that_a_terminal_obeys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hostile = "a\x1b]0;title\x07\r\x9b2J\u202eb\tc"
    lines([hostile, "two\nlines"])
    report_line(hostile)
    printed = capsys.readouterr()
    assert printed.out == "a?]0;title???2J?b\tc\ntwo\nlines\n"
    assert printed.err == "a?]0;title???2J?b\tc\n"
