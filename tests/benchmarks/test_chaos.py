"""The chaos run itself: what it calls malformed is malformed, and its page shows its figures."""

from __future__ import annotations

import asyncio
import json
import math
import random
from pathlib import Path

import pytest

from benchmarks.chaos import ChaosOptions, command_of, parts_of
from benchmarks.parts import faults
from benchmarks.parts.chaos_goals import GOALS, NOT_MEASURED, row
from benchmarks.parts.chaos_page import page
from benchmarks.parts.chaos_record import Kept
from benchmarks.parts.stalls import bound, less
from infra.drills.proxy import Proxy
from infra.machine.process import free_ports
from infra.supervisor.configuration import Program, render
from shared.ledger.decider import Undecodable
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP

RUN = "2026-11-21T12:00:00Z"
END = {
    "jobs_acknowledged": 4000,
    "jobs_ended": 3999,
    "all_ended": False,
    "verify": "failed",
    "violations": ["read models equal the fold: jobs: j1 is missing"],
    "rules": ["a", "read models equal the fold"],
    "counts": {"records": 5, "events": 9},
}
TIMES = {"count": 33, "p50": 1.5, "p99": 3.2, "max": 3.3}
KILLS = {
    "kills": 33,
    "fewest_per_service": 3,
    "at_once": 1,
    "recovery_s": TIMES,
    "deciders_recovery_s": TIMES,
}
RESULT = {
    "runs": {
        RUN: {
            "command": "berth bench chaos --kills 3",
            "cores": 2,
            "load_1m": 1.5,
            "wall_s": 600,
            "settings": {},
            "end": END,
        }
    },
    "parts": {"kills": {**KILLS, "run": RUN}, "recovery": {**KILLS, "run": RUN}},
    "simulation": {
        "seeds": 200,
        "jobs": 5000,
        "deaths": 2700,
        "freezes": 1500,
        "accidents": 5000,
        "ignored": 7000,
        "virtual_h": 2.4,
        "wrong": [{"seed": 7, "what": []}],
        "sabotage": {"no reader rule": True, "no gap check": False},
    },
    "checks": {"tests.replay.test_replay": {"tests": 9, "failed": 1, "skipped": 2}},
}


@pytest.mark.parametrize("kind", range(len(faults.NOISE)))
def test_every_kind_of_noise_is_one_that_nobody_can_read(kind: int) -> None:
    decoder, chance = InputDecoder("admission"), random.Random(kind)
    for _ in range(20):
        (found,) = decoder.decode_plain(TP("commands", 0), 0, faults.NOISE[kind](chance))
        assert isinstance(found.message, Undecodable)


def test_the_page_shows_figures_and_does_not_hide_what_went_wrong() -> None:
    text = page(RESULT, {})
    for told in (
        "33 kills, at least 3 of each service",
        "p99 3.2 s",
        "1 without an end",
        "verify **failed** (1 violations)",
        "jobs: j1 is missing",
        "1 seeds went wrong (7)",
        "199 of 200 stories",
        "1 of 2 sabotages",
        "| no gap check | GREEN: not found out |",
        "6 of 9 passed, 2 skipped",
    ):
        assert told in text


def test_what_nobody_has_measured_says_so() -> None:
    nothing = {"runs": {}, "parts": {}, "simulation": {}, "checks": {}}
    for goal in GOALS:
        assert row(goal, nothing, {})[3] == NOT_MEASURED, goal.name


def test_a_run_that_was_cut_short_leaves_its_figures_and_no_verdict(tmp_path: Path) -> None:
    Kept(tmp_path, "berth bench chaos --only kills", {}).note("kills", KILLS)
    text = (tmp_path / "chaos.md").read_text()
    assert "33 kills" in text
    assert "cut short before the end was judged" in text


def test_a_later_run_replaces_the_parts_that_it_made_and_keeps_the_others(tmp_path: Path) -> None:
    first = Kept(tmp_path, "first", {}, began=1e9)
    first.note("kills", KILLS)
    first.note("away", {"away_s": 60})
    second = Kept(tmp_path, "second", {}, began=2e9)
    second.note("kills", {**KILLS, "kills": 1100})
    second.judged(END)
    found = json.loads((tmp_path / "chaos.json").read_text())
    assert [run["command"] for run in found["runs"].values()] == ["first", "second"]
    assert found["parts"]["kills"]["kills"] == 1100
    second.note("away", {"away_s": 61})
    assert list(json.loads((tmp_path / "chaos.json").read_text())["runs"]) == [second.id]


def test_a_stall_is_that_of_the_time_between_and_a_new_process_begins_at_nothing() -> None:
    before = {0.05: 100.0, 0.25: 110.0, math.inf: 110.0}
    after = {0.05: 199.0, 0.25: 210.0, math.inf: 210.0}
    over = less(after, before)
    assert (bound(over, 0.99), bound(over, 1.0)) == (0.05, 0.25)
    assert less({0.05: 7.0, 0.25: 7.0, math.inf: 7.0}, before)[math.inf] == 7.0


def test_an_unknown_part_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="only=kils: parts are stall, "):
        parts_of(ChaosOptions(only="broker,kils"))


def test_the_command_of_a_run_names_what_is_not_the_default() -> None:
    plain = ChaosOptions(kills=100, only="kills", out="docs/results")
    assert command_of(plain) == "berth bench chaos --kills 100 --only kills"


def test_a_rival_is_told_what_the_supervisor_was_told(tmp_path: Path) -> None:
    told = {"BERTH_LANES": "0,1,2", "BERTH_OTLP": "http://127.0.0.1:1/%", "BERTH_WORK": ""}
    known = Program("placement", ["python", "-m", "services.placement"], told)
    text = render(tmp_path, tmp_path / "socket", [known])
    (tmp_path / "supervisord.conf").write_text(text)
    assert faults.program(tmp_path, "placement") == (list(known.command), told)


def test_a_cut_takes_the_end_of_the_newest_segment(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(b"a" * 100)
    (tmp_path / "00000000000000000050.log").write_bytes(b"b" * 100)
    assert faults.cut(tmp_path, 0.25) == 25
    assert [each.stat().st_size for each in sorted(tmp_path.glob("*.log"))] == [100, 75]


async def test_the_proxy_passes_cuts_and_swallows() -> None:
    behind, before = free_ports(2)

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(100):
            writer.write(piece)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", behind)
    proxy = Proxy(behind)
    await proxy.start(before)
    reader, writer = await asyncio.open_connection("127.0.0.1", before)
    writer.write(b"good")
    assert await reader.read(10) == b"good"
    proxy.mode = "half_open"
    writer.write(b"lost")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(10), 0.2)
    proxy.mode = "cut"
    assert await reader.read(10) in (b"", None)
    writer.close()
    await proxy.stop()
    server.close()
