"""Logs as one JSON object per line on stderr, with fields instead of prose, without secrets."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO

from shared.telemetry.flood_gate import FloodGate

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
HIDDEN = "***"
SECRET_NAME = re.compile(
    r"secret|passw|token$|authorization|api_?key|credential|cookie|dsn", re.IGNORECASE
)
SECRET_TEXT = re.compile(
    r"(?P<url>[a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?=@)"
    r"|(?P<bearer>bearer\s+)\S+"
    r"|(?P<pair>(?:password|secret|api_?key|token)\s*[=:]\s*)[^\s,;'\"]+",
    re.IGNORECASE,
)

log = logging.getLogger(__name__)


def log_json(service: str, level: str = "INFO", stream: TextIO | None = None) -> None:
    """The root logger writes JSON from here on; `stream` is stderr unless given."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(service))
    handler.addFilter(FloodGate())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())


def log_uncaught_errors() -> None:
    """Errors and warnings that Python would write itself, as bare text, become lines like all
    others."""
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_a_thread
    sys.unraisablehook = _unraisable
    logging.captureWarnings(True)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.critical("the process ends", exc_info=(kind, error, trace))


def _uncaught_in_a_thread(told: threading.ExceptHookArgs) -> None:
    error = told.exc_value or told.exc_type()
    name = told.thread.name if told.thread else ""
    extra = {"thread_name": name}
    log.error("a thread ended", exc_info=(told.exc_type, error, told.exc_traceback), extra=extra)


def _unraisable(told: sys.UnraisableHookArgs) -> None:
    error = told.exc_value or told.exc_type()
    extra = {"where": repr(told.object)}
    message = told.err_msg or "an error that could not be raised"
    log.error(message, exc_info=(told.exc_type, error, told.exc_traceback), extra=extra)


class JsonFormatter(logging.Formatter):
    """Whatever is passed as `extra` becomes a field: `log.info("fold", extra={"seq": 7})`."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "message": _clean(record.getMessage()),
        }
        fields = {k: v for k, v in vars(record).items() if k not in STANDARD and k not in line}
        line |= {name: _field(name, value) for name, value in fields.items()}
        if record.exc_info:
            line["error"] = _clean(self.formatException(record.exc_info))
        return json.dumps(line, default=lambda value: _clean(str(value)))


def _field(name: str, value: object) -> object:
    if SECRET_NAME.search(name):
        return HIDDEN
    match value:
        case str():
            return _clean(value)
        case dict():
            return {str(key): _field(str(key), item) for key, item in value.items()}
        case list() | tuple():
            return [_field("", item) for item in value]
    return value


def _clean(text: str) -> str:
    return SECRET_TEXT.sub(lambda found: f"{_kept(found)}{HIDDEN}", text)


def _kept(found: re.Match[str]) -> str:
    return found["url"] or found["bearer"] or found["pair"]
