"""The folder that the containers mount is made once, and is theirs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from infra.compose import archive, project
from infra.machine.process import DidNotStart


def settings(folder: Path, **more: str) -> dict[str, str]:
    return {"ARCHIVE": "/archive", "ARCHIVE_FOLDER": str(folder), **more}


def test_variables_of_the_project_name_none() -> None:
    variables = project.variables()
    assert (variables["ARCHIVE"], variables["RECORDS_D"]) == ("", "0")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_the_folder_is_an_archive_of_the_containers_user(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    assert archive.claim(settings(folder, ARCHIVE="")) == ""
    assert folder.is_dir() and not any(folder.iterdir())
    assert archive.claim(settings(folder)) == str(folder) == archive.claim(settings(folder))
    assert {path.stat().st_uid for path in (folder, *folder.iterdir())} == {archive.USER}


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    with pytest.raises(DidNotStart, match="ARCHIVE_FOLDER: .*not empty"):
        archive.claim(settings(tmp_path))
