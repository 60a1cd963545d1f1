"""Notes that the script of Slurm writes are those that the executor reads."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from itertools import count
from pathlib import Path

import pytest

from infra.slurm.cluster import HOOK
from services.executor.core.engines.noted import folder_name
from services.executor.engines.engine import EngineAway
from services.executor.engines.slurm.hook_folder import HookFolder
from services.executor.engines.slurm.users import user_name
from tests.patience import until
from tests.services.executor.core.engines.looks import IDENTITY

UID = os.getuid()
SHELLS = (("sh",), ("bash", "--posix"))
"""`/bin/sh` is one or the other, by the distribution."""
OF_NODE = {"SLURM_JOB_ID": "17", "SLURM_JOB_UID": str(UID), "SLURMD_NODENAME": "n1"}
PROLOG = {**OF_NODE, "SLURM_SCRIPT_CONTEXT": "prolog_slurmd", "SLURM_JOB_COMMENT": IDENTITY}
EPILOG = {**OF_NODE, "SLURM_SCRIPT_CONTEXT": "epilog_slurmd", "SLURM_JOB_COMMENT": IDENTITY}
END = {"JOBID": "17", "JOBNAME": IDENTITY, "JOBSTATE": "FAILED", "EXITCODE": "0:9"}


class Hook:
    """The script as it is installed, and the folder of its notes."""

    def __init__(self, folder: Path, shell: tuple[str, ...]) -> None:
        self.shell = shell
        self.notes = folder / "notes"
        self.notes.mkdir(mode=0o755)
        self.script = folder / HOOK.name
        shutil.copy(HOOK, self.script)
        self.configuration = self.script.with_suffix(".conf")
        self.configuration.write_text(f"notes={self.notes}\nrun={folder}/run\n")

    def run(self, variables: dict[str, str]) -> int:
        command = (*self.shell, str(self.script))
        return subprocess.run(command, env=variables, check=False).returncode

    def read(self, *uids: int) -> list[tuple[str, str, str]]:
        notes = HookFolder(self.notes, frozenset(uids)).notes([IDENTITY])[IDENTITY]
        return [(note.kind, note.ref, note.node) for note in notes]


@pytest.fixture(params=SHELLS, ids=" ".join)
def hook(tmp_path: Path, request: pytest.FixtureRequest) -> Hook:
    return Hook(tmp_path, request.param)


@pytest.mark.process
def test_begin_and_ends_are_noted_for_the_users_of_berth(hook: Hook) -> None:
    for variables in (PROLOG, EPILOG, {**END, "USERNAME": user_name(UID)}):
        assert hook.run(variables) == 0
    kinds = {("begun", "17", "n1"), ("cleared", "17", "n1"), ("ended", "17", "")}
    assert set(hook.read(UID)) == kinds
    assert hook.read(UID + 1) == [], "another user's job with the comment of a gang shows nothing"
    assert (hook.notes / "bell").exists()


@pytest.mark.process
def test_the_end_of_a_job_that_slurmctld_forgot_is_that_of_its_begin(hook: Hook) -> None:
    hook.run(PROLOG)
    forgotten = {"SLURM_JOB_ID": "17", "SLURMD_NODENAME": "n1"}
    assert hook.run({**forgotten, "SLURM_SCRIPT_CONTEXT": "epilog_slurmd"}) == 0
    assert ("cleared", "17", "n1") in hook.read(UID)
    other = {**forgotten, "SLURM_JOB_ID": "18", "SLURM_SCRIPT_CONTEXT": "epilog_slurmd"}
    assert hook.run(other) == 0
    assert len(hook.read(UID)) == 2


@pytest.mark.process
@pytest.mark.parametrize(
    "changed",
    [
        {"SLURM_JOB_COMMENT": "of another"},
        {"SLURM_JOB_COMMENT": "berth:../../etc/x y"},
        {"SLURM_JOB_COMMENT": "berth:$(touch x)"},
        {"SLURM_JOB_COMMENT": "berth:" + "x" * 300},
        {"SLURM_JOB_ID": "../17"},
        {"SLURMD_NODENAME": "n1/../.."},
        {"SLURM_SCRIPT_CONTEXT": "prolog_slurmctld"},
    ],
)
def test_what_others_write_makes_no_file_and_fails_no_job(
    hook: Hook, changed: dict[str, str]
) -> None:
    assert hook.run({**PROLOG, **changed}) == 0
    assert list(hook.notes.iterdir()) == []


@pytest.mark.process
def test_a_script_that_is_installed_by_half_fails_no_job(hook: Hook) -> None:
    hook.notes.rmdir()
    assert hook.run(PROLOG) == 0
    hook.configuration.write_text("notes='\n")
    assert hook.run(PROLOG) == 0
    hook.configuration.unlink()
    assert hook.run(PROLOG) == 0


def test_notes_that_others_may_write_or_that_are_away_lead_to_nothing(tmp_path: Path) -> None:
    folder = HookFolder(tmp_path, frozenset({UID}))
    tmp_path.chmod(0o777)
    with pytest.raises(EngineAway, match="others than its owner may write there"):
        folder.notes([])
    tmp_path.chmod(0o755)
    assert folder.notes([IDENTITY]) == {IDENTITY: []}
    (tmp_path / folder_name(IDENTITY)).touch()
    with pytest.raises(EngineAway, match="Not a directory"):
        folder.notes([IDENTITY])


async def test_a_note_rings(tmp_path: Path) -> None:
    bell, rings, noted_ns = tmp_path / "bell", asyncio.Event(), count(1)
    bell.touch()
    listening = asyncio.create_task(HookFolder(tmp_path, frozenset()).listen(rings.set))

    def note() -> bool:
        os.utime(bell, ns=(0, next(noted_ns)))
        return rings.is_set()

    try:
        await until(note)
    finally:
        listening.cancel()
        await asyncio.wait([listening])
