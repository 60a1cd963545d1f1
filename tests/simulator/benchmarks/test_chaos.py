"""The chaos run itself: what it calls malformed is malformed, and its page shows its figures."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from infra.process import free_ports
from infra.proxy import Proxy
from infra.supervisor_conf import Program, render
from shared.bus.decider import Undecodable
from shared.bus.inputs import InputDecoder
from shared.bus.log import TP
from simulator.benchmarks.parts import faults
from simulator.benchmarks.parts.chaos_page import page

RESULT = {
    "wall_s": 600,
    "cores": 2,
    "load_1m": 1.5,
    "settings": {"broker": "kafka", "kills": 3},
    "parts": {
        "kills": {"kills": 33, "recovery_s": {"count": 33, "p50": 1.5, "p99": 3.2, "max": 3.3}},
        "end": {
            "jobs_acknowledged": 4000, "jobs_ended": 4000, "verify": "ok", "violations": [],
            "rules": ["a", "b"], "counts": {"records": 5, "events": 9},
        },
    },
    "simulation": {
        "seeds": 200, "jobs": 5000, "deaths": 2700, "freezes": 1500, "accidents": 5000,
        "ignored": 7000, "virtual_h": 2.4, "wrong": [{"seed": 7, "what": []}],
        "sabotage": {"no reader rule": True, "no gap check": False},
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", range(len(faults.NOISE)))
def test_every_kind_of_noise_is_one_that_nobody_can_read(kind: int) -> None:
    decoder, chance = InputDecoder("admission"), random.Random(kind)
    for _ in range(20):
        (found,) = decoder.of_plain(TP("commands", 0), 0, faults.NOISE[kind](chance))
        assert isinstance(found.message, Undecodable)


def test_the_page_shows_figures_and_does_not_hide_what_went_wrong() -> None:
    text = page(RESULT)
    for told in ("33", "p99 3.2", "4000 of them ended", "**ok**", "1 seeds went wrong (7)",
                 "| no gap check | GREEN: not found out |"):  # fmt: skip
        assert told in text


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
