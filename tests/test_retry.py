"""Tests that failed are tried once more, and only where few failed and the run came to its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import retry

pytestmark = pytest.mark.process

FLAKY = """
from pathlib import Path

def test_passes():
    pass

def test_fails_once():
    first = not Path("tried").exists()
    Path("tried").touch()
    assert not first
"""
BROKEN = "def test_fails():\n    assert False\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_flaky.py").write_text(FLAKY)
    return tmp_path


def test_one_that_passes_alone_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert retry.main([]) == pytest.ExitCode.OK
    printed = capfd.readouterr().out
    assert "1 failed, 1 passed" in printed
    assert printed.rpartition("need a mend:")[2].strip() == "test_flaky.py::test_fails_once"


def test_one_that_fails_again_is_final(folder: Path) -> None:
    (folder / "test_broken.py").write_text(BROKEN)
    assert retry.main([]) == pytest.ExitCode.TESTS_FAILED
    assert (folder / "tried").exists()


def test_many_failures_are_final(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "MOST_FAILURES", 0)
    assert retry.main([]) == pytest.ExitCode.TESTS_FAILED


def test_a_run_that_did_not_come_to_its_end_is_final(folder: Path) -> None:
    (folder / "test_broken.py").write_text("import no_such_module\n")
    assert retry.main([]) == pytest.ExitCode.INTERRUPTED
    assert not (folder / "tried").exists()
