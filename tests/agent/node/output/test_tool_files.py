"""A file that a job names is read; what a hostile job puts there is not, and holds nothing up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from berth_agent import file_names
from berth_agent.node.output.tool_files import EVERY_MS, MOST_BYTES, ToolFiles, read_file
from berth_agent.telemetry_receiver import ProcessIterations
from tests.agent.node.output.test_output_progress import allocation

NAME = "reports/nvrx.json"


def scores(own: float) -> str:
    return json.dumps({"gpu_relative_perf_scores": {"0": 1.0, "1": own}})


class Bench:
    """A running worker of rank 1 with a private directory."""

    def __init__(self, folder: Path, **fields: Any) -> None:
        self.work = folder / "work"
        self.private = self.work / "w1"
        (self.private / "reports").mkdir(parents=True)
        own = folder / "allocation"
        own.mkdir()
        (own / file_names.WORK).write_text("w1")
        job: dict[str, Any] = {"env": {"BERTH_STRAGGLERS": NAME}, "rank": 1, "world_size": 2}
        self.held = [allocation(own, **{**job, **fields})]
        self.noted: list[tuple[str, int, ProcessIterations]] = []
        self.files = ToolFiles(str(self.work), lambda *note: self.noted.append(note))
        self.now_ms = 0

    def look(self) -> int:
        """Return how often something was noted so far."""
        self.now_ms += EVERY_MS
        self.files.look(self.held, self.now_ms)
        return len(self.noted)

    def times(self) -> list[tuple[int, float | None]]:
        messages = [rows[rank].message(name, rank, rank) for name, rank, rows in self.noted]
        return [(message.steps[0], message.own_s[0]) for message in messages]


def test_each_change_of_the_file_is_an_iteration(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert bench.look() == 0
    (bench.private / NAME).write_text(scores(0.5))
    assert bench.look() == bench.look() == 1
    (bench.private / NAME).write_text("{")
    assert bench.look() == 1, "it is being written"
    (bench.private / NAME).write_text(scores(0.25))
    assert bench.look() == 2
    assert bench.times() == [(0, 2.0), (1, 4.0)]
    assert bench.noted[0][:2] == ("0/5/0/0", 1)


def inspector(waited_s: float, count: int = 100) -> str:
    labels = '{node="n1",gpu="GPU0",collective="AllReduce"}'
    mean_us = waited_s / count * 1e6
    return (
        "# HELP nccl_bus_bandwidth_gbs NCCL bus bandwidth\n"
        f"nccl_collective_count{labels} {count}\n"
        f"nccl_collective_exec_time_sum_microseconds{labels} {waited_s * 1e6}\n"
        f"nccl_collective_exec_time_microseconds{labels} {mean_us}\n"
    )


def test_the_newest_file_of_an_inspector_is_an_iteration_since_the_one_before(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, env={"BERTH_STRAGGLERS": "reports/*.prom"})
    for number, waited_s in enumerate((3.0, 12.0, 6.0)):
        path = bench.private / f"reports/nccl-{number % 2}.prom"
        path.write_text(inspector(waited_s))
        written_ns = (1_000 + 30 * number) * 10**9
        os.utime(path, ns=(written_ns, written_ns))
        bench.look()
    (bench.private / "reports/other.txt").write_text("newer, and of another name")
    assert bench.look() == 2
    assert [round(own_s or 0, 6) for _, own_s in bench.times()] == [0.18, 0.24]


def test_numbers_too_large_for_a_float_end_no_look(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for number in ("1" + "0" * 400, "2" + "0" * 400):
        text = f'nccl_collective_exec_time_microseconds{{coll_sn="{number}"}} 1\n'
        (bench.private / NAME).write_text(text)
        written_ns = len(bench.noted) + int(number[0]) * 30 * 10**9
        os.utime(bench.private / NAME, ns=(written_ns, written_ns))
        assert bench.look() == 0
    (bench.private / NAME).write_text(scores(0.5))
    assert bench.look() == 1


class Several:
    """Running workers, each with a file of its own."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.noted: list[str] = []
        self.held = []
        for number in range(workers):
            (folder / f"work/w{number}/reports").mkdir(parents=True)
            (folder / f"work/w{number}" / NAME).write_text(scores(0.5))
            own = folder / str(number)
            own.mkdir()
            (own / file_names.WORK).write_text(f"w{number}")
            job: dict[str, Any] = {"env": {"BERTH_STRAGGLERS": NAME}, "rank": 1, "world_size": 2}
            self.held.append(allocation(own, name=f"0/{number}/0/0", **job))


def test_an_error_in_one_file_leaves_the_others_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    several = Several(tmp_path, 3)

    def note(name: str, *_: object) -> None:
        if name == "0/1/0/0":
            raise LookupError(name)
        several.noted.append(name)

    files = ToolFiles(str(tmp_path / "work"), note)
    files.look(several.held, EVERY_MS)
    files.look(several.held, 2 * EVERY_MS)
    assert several.noted == ["0/0/0/0", "0/2/0/0"]
    [record] = caplog.records
    assert "0/1/0/0 is not read any more" in record.getMessage()


def test_a_look_ends_after_its_cpu_time_and_the_next_one_goes_on(tmp_path: Path) -> None:
    several, used_s = Several(tmp_path, 3), iter(float(second) for second in range(99))
    files = ToolFiles(
        str(tmp_path / "work"), lambda name, *_: several.noted.append(name), lambda: next(used_s)
    )
    for look in (1, 2, 3):
        files.look(several.held, look * EVERY_MS)
        assert several.noted == [f"0/{number}/0/0" for number in range(look)]


@pytest.mark.parametrize("fields", [{"env": {}}, {"phase": "stopping"}])
def test_other_workers_are_not_read(tmp_path: Path, fields: dict[str, Any]) -> None:
    bench = Bench(tmp_path, **fields)
    (bench.private / NAME).write_text(scores(0.5))
    assert bench.look() == 0


def link_out(target: Path) -> None:
    secret = target.parents[3] / "secret"
    secret.write_text(scores(0.5))
    target.symlink_to(secret)


def hard_link(target: Path) -> None:
    secret = target.parents[3] / "secret"
    secret.write_text(scores(0.5))
    os.link(secret, target)


def link_of_folder(target: Path) -> None:
    elsewhere = target.parents[3] / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / target.name).write_text(scores(0.5))
    target.parent.rmdir()
    target.parent.symlink_to(elsewhere)


def huge(target: Path) -> None:
    target.write_text(scores(0.5))
    os.truncate(target, MOST_BYTES + 1)


@pytest.mark.parametrize(
    "make",
    [link_out, hard_link, link_of_folder, huge, os.mkfifo, os.mkdir],
    ids=lambda m: m.__name__,
)
def test_a_hostile_file_is_left_alone(tmp_path: Path, make: Callable[[Path], object]) -> None:
    bench = Bench(tmp_path)
    make(bench.private / NAME)
    assert bench.look() == 0
    with pytest.raises((OSError, ValueError)):
        read_file(str(bench.private), NAME)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "", "a//b", "./a", "/".join("a" * 9)])
def test_a_path_out_of_the_private_directory_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises((OSError, ValueError)):
        read_file(str(tmp_path), path)
