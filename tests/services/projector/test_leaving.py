"""The projector lets histories of jobs leave, where it is given days and an archive."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from services.projector.leaving import Leaving
from services.projector.settings import ProjectorSettings
from shared.ledger.errors import ArchiveUnreachable
from shared.projections.database import connect
from shared.projections.retention import read_mark
from tests.shared.projections.history import project_all
from tests.shared.projections.test_retention import archive, months

DAYS = 80.0


def settings(tmp_path: Path, **more: object) -> ProjectorSettings:
    given = {"postgres": "", "job_history_d": DAYS, **more}
    return ProjectorSettings(kafka="127.0.0.1:1", data=tmp_path, **given)


def test_days_without_an_archive_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="job_history_d: 80; needs an archive"):
        settings(tmp_path)


def test_histories_may_not_be_kept_longer_than_their_jobs(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="records_d: 30; needs an archive"):
        settings(tmp_path, job_history_d=0, records_d=30)
    with pytest.raises(ValidationError, match="job_history_d: 80; at most records_d, 30"):
        settings(tmp_path, archive=str(tmp_path), records_d=30)


async def test_histories_leave_once_the_archive_is_there(database: str, tmp_path: Path) -> None:
    archive(tmp_path)
    folder = tmp_path / "archive"
    leaving = Leaving(settings(tmp_path, archive=str(folder), postgres=database, records_d=DAYS))
    await project_all(database, months())
    conn = await connect(database)
    folder.rename(tmp_path / "unmounted")
    with pytest.raises(ArchiveUnreachable, match="no archive"):
        await leaving.leave()
    assert (await read_mark(conn)).row_count == 0
    assert not folder.exists()
    shutil.move(tmp_path / "unmounted", folder)
    await leaving.leave()
    assert (await read_mark(conn)).row_count > 0
    assert (await read_mark(conn, "job_admission")).row_count > 0
    await conn.close()
