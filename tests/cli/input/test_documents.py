"""Documents of files: what JSON cannot express is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.errors import BadInput
from cli.input.documents import check_values, read_documents


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: 2026-01-02", "name: 2026-01-02; text, number, .* put it in quotes"),
        ("name: 2026-19-92", "invalid YAML: month must be in 1..12"),
        ("env: {A: !!binary aGk=}", "env: A: b'hi'; text"),
        ("env: {1: x}", "env: 1 is no name; put it in quotes"),
        ("gang: {workers: .inf}", "gang: workers: inf; a finite number"),
        ("command: &a [*a]", "nested too deeply, or in itself"),
        ("[" * 100_000, "invalid YAML"),
    ],
)
def test_a_value_that_json_lacks_is_refused_with_its_place(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=words):
        read_documents(path)


def test_json_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text("[" * 100_000)
    with pytest.raises(BadInput, match="invalid JSON"):
        read_documents(path)


def test_values_of_json_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("a: [1, 2.5, x, null, true]\nb: {c: {}}\n---\nd: 1\n")
    first: dict[str, object] = {"a": [1, 2.5, "x", None, True], "b": {"c": {}}}
    assert read_documents(path) == [first, {"d": 1}]
    check_values(first, "")
