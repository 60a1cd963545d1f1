"""A simulation's folder vouches for itself, and any beginning of it is a whole installation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from shared.bus.logs.memory import MemoryBroker
from shared.ledger.record import decode
from simulator.engine.options import SimulationOptions, build_scenario
from simulator.engine.publishing import publish, verify_ledgers
from simulator.engine.recording import (
    MANIFEST,
    InvalidRecording,
    last_moment_ms,
    open_recording,
    read_values,
    record,
)
from simulator.engine.report import report
from simulator.engine.run import simulate
from simulator.workload.synthetic import generate

CUT = "placement-0.jsonl"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs that wait for each other and are stopped."""
    options = SimulationOptions(
        base_policy="srsf", preemption="ranked", nodes=2, load=1.2, last_share=1, large_gang_share=1
    )
    scenario, sizing = build_scenario(generate(40, seed=0), options)
    done = simulate(scenario, ledgers=True)
    assert done.broker is not None
    publish(done.broker)
    path = tmp_path_factory.mktemp("recorded")
    record(done.broker, path, report(done, sizing, options))
    return path


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def beginning(folder: Path, until_ms: int | None) -> MemoryBroker:
    broker = MemoryBroker()
    for file in open_recording(folder).files:
        for value in read_values(folder, file, until_ms):
            broker.append(file.tp, value)
    return broker


def moments(folder: Path) -> list[int]:
    """At which placement decided something: a cut within one of them would be seen."""
    lines = (folder / CUT).read_bytes().splitlines()
    return [manifest.at for line in lines if (manifest := decode(line))]


async def test_any_beginning_keeps_every_rule_of_verify(folder: Path) -> None:
    whole = await verify_ledgers(beginning(folder, None))
    assert whole.violations == []
    decided = moments(folder)
    sizes = []
    for at in decided[: -1 : len(decided) // 6]:
        judged = await verify_ledgers(beginning(folder, at))
        assert judged.violations == []
        sizes.append(judged.counts["events"])
    assert sizes == sorted(set(sizes))
    assert 0 < sizes[0] < sizes[-1] < whole.counts["events"]


def test_cluster_seconds_are_counted_from_the_first_submission(folder: Path) -> None:
    """The first job's own record, and no second one, is there at 0 s."""
    recording = open_recording(folder)
    at_first = beginning(folder, recording.moment_ms(0.0))
    commands = next(file.tp for file in recording.files if file.topic == "commands")
    assert len(at_first.entries(commands)) == 1
    scale = recording.report.time_scale
    assert recording.moment_ms(10 * scale) - recording.moment_ms(0.0) == 10_000


def test_the_last_moment_is_that_of_the_last_record_that_is_shown(folder: Path) -> None:
    recording, decided = open_recording(folder), moments(folder)
    last_ms = last_moment_ms(folder, recording)
    assert last_ms >= decided[-1]
    assert last_moment_ms(folder, recording, last_ms + 1) == last_ms
    assert last_moment_ms(folder, recording, decided[0]) == decided[0]


def test_an_invalid_folder_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidRecording, match=r"nowhere: must be a folder that `berth simulate --out`"
    ):
        open_recording(tmp_path / "nowhere")
    with pytest.raises(InvalidRecording, match=r"simulation\.json: missing; .* writes it last"):
        open_recording(tmp_path)


def test_a_file_that_was_cut_between_two_records_is_named(copy: Path) -> None:
    lines = (copy / CUT).read_bytes().splitlines(keepends=True)
    (copy / CUT).write_bytes(b"".join(lines[:-1]))
    with pytest.raises(
        InvalidRecording, match=rf"{CUT}: holds {len(lines) - 1} records, must hold"
    ):
        open_recording(copy)


def test_a_file_that_was_cut_within_a_record_is_named(copy: Path) -> None:
    (copy / CUT).write_bytes((copy / CUT).read_bytes()[:-9])
    with pytest.raises(InvalidRecording, match=rf"{CUT}: holds \d+ records, must hold \d+"):
        open_recording(copy)


def test_a_changed_byte_is_seen(copy: Path) -> None:
    (copy / CUT).write_bytes((copy / CUT).read_bytes().replace(b"n0", b"n9", 1))
    with pytest.raises(InvalidRecording, match=rf"{CUT}: its sha256 must be that of {MANIFEST}"):
        open_recording(copy)


def test_a_missing_file_is_named(copy: Path) -> None:
    (copy / CUT).unlink()
    with pytest.raises(InvalidRecording, match=rf"{CUT}: No such file"):
        open_recording(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format: must be 1, not 2"),
        ({"files": []}, "files: must be of access, admission"),
        ({"report": {"jobs": 1}}, "report.nodes: Field required"),
        ({"more": 1}, "more: Extra inputs are not permitted"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(
    copy: Path, change: dict[str, Any], message: str
) -> None:
    manifest = json.loads((copy / MANIFEST).read_text())
    (copy / MANIFEST).write_text(json.dumps(manifest | change))
    with pytest.raises(InvalidRecording, match=message):
        open_recording(copy)


def test_an_interrupted_writing_leaves_no_manifest(folder: Path, copy: Path) -> None:
    """Not even that of an older simulation in the same folder."""
    report = open_recording(folder).report.model_dump()
    (copy / CUT).unlink()
    (copy / CUT).mkdir()
    with pytest.raises(IsADirectoryError):
        record(beginning(folder, None), copy, report)
    with pytest.raises(InvalidRecording, match="missing"):
        open_recording(copy)
