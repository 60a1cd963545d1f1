"""An agent of an ordinary user is bounded also where the benchmark itself is not root."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.parts.isolation.node import (
    ORDINARY_UID,
    USER_PIDS,
    as_user,
    place_of_folders,
    threads_of,
)

LIMIT = "import resource; print(resource.getrlimit(resource.RLIMIT_NPROC)[0])"


def limit_of(words: list[str]) -> int:
    return int(subprocess.check_output([*words, sys.executable, "-c", LIMIT]))


@pytest.mark.process
def test_root_has_no_bound_and_other_users_what_they_have_and_some_more() -> None:
    assert as_user(0, 0) == []
    assert as_user(ORDINARY_UID, 0)[2:] == [
        "setpriv",
        f"--reuid={ORDINARY_UID}",
        f"--regid={ORDINARY_UID}",
        "--clear-groups",
    ]
    words = as_user(ORDINARY_UID, ORDINARY_UID)
    assert words[:1] == ["prlimit"] and len(words) == 2
    assert USER_PIDS <= limit_of(words) <= threads_of(ORDINARY_UID) + 2 * USER_PIDS


def test_threads_are_those_of_one_user() -> None:
    assert threads_of(os.getuid()) >= 1
    assert threads_of(2**31 - 5) == 0


def test_a_user_who_may_not_write_at_the_usual_place_has_its_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert place_of_folders(tmp_path / "none") == tmp_path
    usual = tmp_path / "usual"
    usual.mkdir()
    assert place_of_folders(usual) == usual
