"""Repeated records of libraries are collapsed in the log of a service."""

from __future__ import annotations

import io
import json
import logging

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaConnectionError

from infra.machine.process import free_ports
from shared.telemetry.flood_gate import EVERY_S, MAX_KINDS, FloodGate
from shared.telemetry.json_logs import JsonLineFormatter


class Gated:
    """Loggers behind a gate whose clock stands until it is set."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self._stream = io.StringIO()
        self._handler = logging.StreamHandler(self._stream)
        self._handler.setFormatter(JsonLineFormatter("placement"))
        self._handler.addFilter(FloodGate(now_s=lambda: self.now_s))

    def say(self, level: int, text: str, *args: object, by: str = "aiokafka") -> None:
        record = logging.LogRecord(by, level, __file__, 1, text, args, None)
        self._handler.handle(record)

    def lines_written(self) -> list[tuple[str, object]]:
        """Message and `repeated` of each line."""
        lines = [json.loads(line) for line in self._stream.getvalue().splitlines()]
        return [(line["message"], line.get("repeated")) for line in lines]


def test_the_first_record_passes_and_then_one_in_ten_seconds_with_a_count() -> None:
    gated = Gated()
    for at_s in range(100, 131):
        gated.now_s = float(at_s)
        for node in (1, 2):
            gated.say(logging.ERROR, "Unable connect to node with id %s", node)
    lines_written = [("Unable connect to node with id 1", count) for count in (None, 19, 19, 19)]
    assert gated.lines_written() == lines_written


def test_each_kind_is_counted_by_itself() -> None:
    gated = Gated()
    for _ in range(3):
        gated.say(logging.ERROR, "a %s", 1)
        gated.say(logging.WARNING, "a %s", 1)
        gated.say(logging.ERROR, "b")
        gated.say(logging.ERROR, "b", by="faust.app")
    gated.now_s += EVERY_S
    gated.say(logging.ERROR, "b")
    assert gated.lines_written() == [("a 1", None)] * 2 + [("b", None)] * 2 + [("b", 2)]


def test_records_of_this_project_and_below_warning_or_critical_always_pass() -> None:
    gated = Gated()
    for _ in range(3):
        gated.say(logging.ERROR, "ours", by="shared.bus.domain")
        gated.say(logging.INFO, "told")
        gated.say(logging.CRITICAL, "dead")
    assert gated.lines_written() == [
        (text, None) for _ in range(3) for text in ("ours", "told", "dead")
    ]


def test_texts_without_end_are_let_through_and_not_kept() -> None:
    gated = Gated()
    for number in range(MAX_KINDS + 3):
        for _ in range(2):
            gated.say(logging.ERROR, f"unheard of {number}")
    assert len(gated.lines_written()) == MAX_KINDS + 2 * 3


async def test_a_client_without_its_broker_writes_few_lines(lines: io.StringIO) -> None:
    (port,) = free_ports(1)
    for _ in range(20):
        with pytest.raises(KafkaConnectionError):
            await AIOKafkaClient(bootstrap_servers=f"127.0.0.1:{port}").bootstrap()
    lines_written = [json.loads(line) for line in lines.getvalue().splitlines()]
    from_client = [line for line in lines_written if line["logger"].partition(".")[0] == "aiokafka"]
    assert {line["level"] for line in from_client} == {"error"}
    assert 1 <= len(from_client) <= 2  # connection refused, in both address families
