"""Files of large answers are removed once they are old."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from services.throttle.topic.files import AnswerFiles

OLD_S, LIMIT_S = 1_000.0, 2_000.0


async def test_old_files_are_removed_and_new_ones_stay(tmp_path: Path) -> None:
    files = AnswerFiles(tmp_path)
    old, new = await files.store("ada", b"old"), await files.store("ada", b"new")
    half = tmp_path / "ada" / ".abandoned.half"
    half.write_bytes(b"x")
    for path in (tmp_path / old.path, half):
        os.utime(path, (OLD_S, OLD_S))
    assert files.remove_before(LIMIT_S) == 2
    assert [path.name for path in (tmp_path / "ada").iterdir()] == [Path(new.path).name]


async def test_an_answer_that_is_stored_again_is_new(tmp_path: Path) -> None:
    files = AnswerFiles(tmp_path)
    stored = await files.store("ada", b"same")
    os.utime(tmp_path / stored.path, (OLD_S, OLD_S))
    await files.store("ada", b"same")
    assert files.remove_before(LIMIT_S) == 0


async def test_a_folder_that_is_not_there_has_no_old_files(tmp_path: Path) -> None:
    task = asyncio.create_task(AnswerFiles(tmp_path / "none").keep_for(1.0))
    await asyncio.sleep(0.05)
    assert not task.done()
    task.cancel()
