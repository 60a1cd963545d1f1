"""Commands of a Slurm that Berth cannot read: nothing is concluded, and its words are passed on."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.executor.engines.engine import EngineAway
from services.executor.engines.slurm.commands import SlurmCommands


@pytest.mark.process
@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "echo \"sinfo: unrecognized option '--json'\" >&2; exit 1",
            "unrecognized option '--json'",
        ),
        ("echo PARTITION AVAIL", "Expecting value"),
        ("echo '[]'", "an object is expected"),
        ('echo \'{"errors": ["no plugin"]}\'', "no plugin"),
    ],
)
async def test_a_version_that_prints_no_json_is_away_in_its_own_words(
    tmp_path: Path, script: str, words: str
) -> None:
    program = tmp_path / "sinfo"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(EngineAway, match=f"sinfo: .*{words}"):
        await SlurmCommands(tmp_path).read_json("sinfo", "--json")
