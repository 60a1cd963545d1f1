"""A file of a secret has its mode, and the first of two writers wins."""

from __future__ import annotations

from pathlib import Path

from shared.secrets.private_file import create, replace


def test_the_first_text_stays(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    assert create(path, "one", 0o640) and not create(path, "two", 0o600)
    assert path.read_text() == "one"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    create(path, "one", 0o600)
    replace(path, "two", 0o400)
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o400
    assert list(tmp_path.iterdir()) == [path]
