"""A service sets up telemetry in one call, and its logs contain no secrets."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.process.settings import Settings
from shared.telemetry.setup import start_telemetry
from tests.patience import PATIENCE_S

from .conftest import Sink, placed


def logged(lines: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


def test_a_record_is_one_line_with_fields(lines: io.StringIO) -> None:
    logging.getLogger("bus").info("record\nignored", extra={"partition": 3, "place": "3/7/0"})
    [line] = logged(lines)
    assert line.pop("at")
    assert line == {
        "level": "info",
        "service": "placement",
        "logger": "bus",
        "message": "record\nignored",
        "partition": 3,
        "place": "3/7/0",
    }


def test_a_level_below_is_not_written(lines: io.StringIO) -> None:
    logging.getLogger("bus").debug("noise")
    assert logged(lines) == []


def test_an_exception_is_a_field_of_the_same_line(lines: io.StringIO) -> None:
    try:
        raise KeyError("pool")
    except KeyError:
        logging.getLogger("bus").exception("died")
    [line] = logged(lines)
    assert "KeyError: 'pool'" in str(line["error"])


CANARY = "canary-7f3a"


@pytest.mark.parametrize(
    "text",
    [
        f"cannot reach postgresql://berth:{CANARY}@127.0.0.1:5432/berth",
        f"header Authorization: Bearer {CANARY}",
        f"password={CANARY}",
        f"api_key: {CANARY}, retry",
    ],
)
def test_no_secret_is_written(lines: io.StringIO, text: str) -> None:
    extra = {"api_key": CANARY, "postgres_dsn": CANARY, "nested": {"token": CANARY, "url": text}}
    try:
        raise ValueError(text)
    except ValueError:
        logging.getLogger("bus").exception(text, extra=extra)
    assert CANARY not in lines.getvalue()
    assert "***" in lines.getvalue()


UNCAUGHT = """
import threading, warnings
from shared.telemetry.json_logs import log_json, log_uncaught_errors

class Odd:
    def __del__(self):
        raise KeyError("finalizer")

def thread():
    raise KeyError("thread")

log_json("placement")
log_uncaught_errors()
warnings.warn("deprecated", DeprecationWarning)
Odd()
one = threading.Thread(target=thread)
one.start()
one.join()
raise KeyError("main")
"""


@pytest.mark.process
def test_uncaught_errors_are_logged_as_lines() -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNCAUGHT],
        timeout=PATIENCE_S,
        check=False,
        capture_output=True,
        text=True,
    )
    warned, *lines = (json.loads(line) for line in done.stderr.splitlines())
    assert (warned["level"], "deprecated" in warned["message"]) == ("warning", True)
    for line, level, where in zip(
        lines, ("error", "error", "critical"), ("finalizer", "thread", "main"), strict=True
    ):
        assert (line["level"], f"KeyError: '{where}'" in line["error"]) == (level, True)
    assert done.returncode == 1


@pytest.fixture
def kept_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
    logging.captureWarnings(False)


@pytest.mark.usefixtures("kept_logging")
def test_settings_turn_spans_on_and_they_are_counted(sink: Sink, tmp_path: Path) -> None:
    settings = Settings(kafka="127.0.0.1:1", data=tmp_path, otlp=sink.url, instance="p1")
    telemetry = start_telemetry("placement", settings)
    own = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
    telemetry.spans.record_decisions([placed(traceparent=own)], [""], 1, 2)
    telemetry.spans.shutdown(PATIENCE_S)
    assert len(sink.spans()) == 1
    assert telemetry.metrics.registry.get_sample_value("berth_spans_exported_total") == 1


@pytest.mark.process
def test_the_sdk_is_not_loaded_where_spans_are_off() -> None:
    code = (
        "import sys, shared.telemetry.setup as s\n"
        "s.Spans('gateway', '', 'g1').shutdown()\n"
        "raise SystemExit('opentelemetry' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], timeout=PATIENCE_S, check=False).returncode
        == 0
    )
