"""`berth stragglers` tells the formats apart and names the slow ranks."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.commands.stragglers import rank_of, read_scores
from cli.errors import BadInput
from cli.main import app
from tests.services.failslow.core.readers.test_flight_recorder import a_training
from tests.services.failslow.core.readers.test_nccl_inspector import a_file
from tests.services.failslow.core.readers.test_nvrx import REPORT


def dumps(folder: Path) -> list[Path]:
    paths = []
    for rank, document in enumerate(a_training([30, 30, 75])):
        path = folder / f"nccl_trace_rank_{rank}"
        path.write_bytes(pickle.dumps(document))
        paths.append(path)
    return paths


def test_dumps_of_the_flight_recorder_have_scores(tmp_path: Path) -> None:
    words = ["stragglers", *map(str, dumps(tmp_path)), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.output)
    assert printed["stragglers"] == ["2"]
    assert printed["relative_perf_scores"]["2"] == pytest.approx(0.4)


def test_the_table_marks_slow_ranks(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(REPORT))
    lines = CliRunner().invoke(app, ["stragglers", str(path)]).output.splitlines()
    assert [line.split() for line in lines[1:]] == [["0", "1.00", "-"], ["1", "0.50", "slow"]]


def test_files_of_the_inspector_are_read_together(tmp_path: Path) -> None:
    paths = [tmp_path / "n1.prom", tmp_path / "n2.prom"]
    paths[0].write_text(a_file(1, [100.0, 100.0]))
    paths[1].write_text(a_file(2, [25.0]))
    assert read_scores(paths) == pytest.approx({"n1/GPU0": 1.0, "n1/GPU1": 1.0, "n2/GPU0": 0.25})


def test_bad_files_are_explained(tmp_path: Path) -> None:
    report, nameless = tmp_path / "report.json", tmp_path / "dump"
    report.write_text(json.dumps(REPORT))
    nameless.write_bytes(b"\x80\x04junk")
    second = tmp_path / "second.json"
    second.write_text(json.dumps(REPORT))
    with pytest.raises(BadInput, match="NVRx reports: 2; one is allowed"):
        read_scores([report, second])
    with pytest.raises(BadInput, match="dump; no rank in its name"):
        read_scores([nameless])
    nameless.rename(tmp_path / "dump_0")
    with pytest.raises(BadInput, match="flight recorder: cannot be unpickled"):
        read_scores([tmp_path / "dump_0"])


@pytest.mark.parametrize(
    ("name", "rank"), [("trace_7", 7), ("trace12.json", 12), ("nccl_rank_3.pickle", 3)]
)
def test_the_rank_ends_the_name_of_a_dump(name: str, rank: int) -> None:
    assert rank_of(Path(name)) == rank
