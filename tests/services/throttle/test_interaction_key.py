from __future__ import annotations

from pathlib import Path

import pytest

from services.throttle.interaction_key import NAME, InteractionIds, read_interaction_key


def test_a_key_is_generated_once_and_kept_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "throttle"
    key = read_interaction_key(None, folder)
    assert len(key) >= 32
    assert read_interaction_key(None, folder) == key
    assert (folder / NAME).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == [NAME]


def test_processes_with_the_same_file_accept_each_others_ids(tmp_path: Path) -> None:
    given = tmp_path / "key"
    given.write_text("one-key-for-all-processes\n")
    one, other = (
        InteractionIds(read_interaction_key(given, tmp_path / name)) for name in ("one", "other")
    )
    interaction = one.issue("acme", "chat")
    assert other.is_issued("acme", "chat", interaction)
    assert not other.is_issued("acme", "chat", "ticket-4711")


def test_a_file_that_is_no_key_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="interaction_key: .*gone"):
        read_interaction_key(tmp_path / "gone", tmp_path)
    (tmp_path / "short").write_text("abc")
    with pytest.raises(ValueError, match="at least 16 are required"):
        read_interaction_key(tmp_path / "short", tmp_path)
