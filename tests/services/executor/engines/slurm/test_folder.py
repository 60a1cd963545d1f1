"""The folder of a gang: a program begins once, or never, and whoever decides first is right."""

from __future__ import annotations

import os
from pathlib import Path

from services.executor.core.engines.output_lines import TAIL_LINES
from services.executor.engines.slurm.folder import GangFolder
from tests.services.executor.core.engines.looks import IDENTITY, gang_of, placed_history


def folder(root: Path) -> GangFolder:
    made = GangFolder(root, IDENTITY)
    made.write_scripts(gang_of(placed_history()), "")
    return made


def test_what_is_forbidden_never_begins_and_what_has_begun_is_not_forbidden(tmp_path: Path) -> None:
    first = folder(tmp_path / "a")
    first.forbid()
    first.forbid()
    assert first.progress().is_forbidden and not first.progress().is_begun
    second = folder(tmp_path / "b")
    (second.path / "decided").symlink_to("job-17")
    second.forbid()
    assert second.progress().is_begun and not second.progress().is_forbidden


def test_a_gang_that_was_never_submitted_can_be_forbidden(tmp_path: Path) -> None:
    made = GangFolder(tmp_path, IDENTITY)
    assert made.progress() == GangFolder(tmp_path, "berth:x:y:1/1/0").progress()
    made.forbid()
    assert made.progress().is_forbidden


def test_the_environment_is_of_its_user_alone(tmp_path: Path) -> None:
    made = folder(tmp_path)
    assert (made.path / "environment.sh").stat().st_mode & 0o077 == 0
    assert made.path.stat().st_mode & 0o077 == 0


def test_the_notes_of_a_gang_are_read(tmp_path: Path) -> None:
    made = folder(tmp_path)
    (made.path / "ready").write_text("17\n")
    (made.path / "rank-0.end").write_text("3 80 200 \n")
    (made.path / "rank-1.end").write_text("143 90 300 walltime\n")
    (made.path / "rank-0.out").write_text("".join(f"line {n}\0\n" for n in range(50)))
    made.start("17", 20_017)
    assert (made.path / "go").read_text() == "17 20017\n"
    progress = made.progress()
    assert progress.ready == "17"
    assert (progress.ends[0].exit_code, progress.ends[0].ran_ms, progress.ends[0].reason) == (
        3,
        80,
        "",
    )
    assert (
        progress.ends[0].output[-1] == "line 49\N{REPLACEMENT CHARACTER}"
        and len(progress.ends[0].output) == TAIL_LINES
    )
    assert (progress.ends[1].reason, progress.ends[1].output) == ("walltime", ())


def test_output_is_read_from_any_place(tmp_path: Path) -> None:
    made = folder(tmp_path)
    assert made.output(0, 0) == b""
    (made.path / "rank-0.out").write_bytes(b"abc")
    assert (made.output(0, 1), made.output(0, 3)) == (b"bc", b"")


def test_a_tenant_cannot_have_a_file_of_others_read_or_written(tmp_path: Path) -> None:
    made, secret = folder(tmp_path / "a"), tmp_path / "secret"
    secret.write_text("17")
    for name in ("rank-0.out", "ready", "go"):
        (made.path / name).symlink_to(secret)
    assert made.output(0, 0) == b"" and made.progress().ready == ""
    made.start("99", None)
    assert secret.read_text() == "17" and (made.path / "go").read_text() == "99 0\n"


def test_a_pipe_or_nonsense_in_place_of_a_note_counts_as_absent(tmp_path: Path) -> None:
    made = folder(tmp_path)
    os.mkfifo(made.path / "rank-0.end")
    (made.path / "rank-1.end").write_text("nonsense")
    (made.path / "rank-x.end").write_text("0 1 2 ")
    assert made.progress().ends == {}


def test_what_a_tenant_puts_in_place_of_a_file_neither_restarts_nor_frees_its_gang(
    tmp_path: Path,
) -> None:
    made = folder(tmp_path)
    (made.path / "decided").write_text("forbidden")
    assert made.progress().is_begun and not made.progress().is_forbidden
    (made.path / "go").mkdir()
    made.start("17", None)
    assert [path.name for path in made.path.glob("go*")] == ["go"]
