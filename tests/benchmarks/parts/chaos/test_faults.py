"""Malformed records cannot be decoded; a second writer has the configuration of the first."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from benchmarks.parts.chaos import faults
from infra.supervisor.configuration import Program, render
from shared.ledger.decider import Undecodable
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP


@pytest.mark.parametrize("kind", range(len(faults.NOISE)))
def test_no_kind_of_noise_can_be_decoded(kind: int) -> None:
    decoder, draw = InputDecoder("admission"), random.Random(kind)
    for _ in range(20):
        (item,) = decoder.decode_plain(TP("commands", 0), 0, faults.NOISE[kind](draw))
        assert isinstance(item.message, Undecodable)


def test_a_second_writer_gets_command_and_environment_of_the_supervised_one(tmp_path: Path) -> None:
    variables = {"BERTH_LANES": "0,1,2", "BERTH_OTLP": "http://127.0.0.1:1/%", "BERTH_SLOW": ""}
    program = Program("placement", ["python", "-m", "services.placement"], variables)
    text = render(tmp_path, tmp_path / "socket", [program])
    (tmp_path / "supervisord.conf").write_text(text)
    assert faults.program(tmp_path, "placement") == (list(program.command), variables)


def test_the_end_of_the_newest_segment_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(b"a" * 100)
    (tmp_path / "00000000000000000050.log").write_bytes(b"b" * 100)
    assert faults.truncate_newest_segment(tmp_path, 0.25) == 25
    assert [path.stat().st_size for path in sorted(tmp_path.glob("*.log"))] == [100, 75]


async def test_waiting_ends_with_the_condition_or_the_limit() -> None:
    began = time.monotonic()
    assert await faults.wait_until(lambda: True, 60.0) is not None
    assert await faults.wait_until(lambda: False, 0.0) is None
    assert time.monotonic() - began < 30.0
