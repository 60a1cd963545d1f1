"""Logs as one JSON object per line on stderr, with fields instead of prose, without secrets."""

from __future__ import annotations

import logging
import re
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

from pythonjsonlogger.core import RESERVED_ATTRS, merge_record_extra
from pythonjsonlogger.json import JsonFormatter

from shared.telemetry.flood_gate import FloodGate

RESERVED = frozenset(RESERVED_ATTRS) | {"taskName"}
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
    handler.setFormatter(JsonLineFormatter(service))
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


class JsonLineFormatter(JsonFormatter):
    """Writes whatever is passed as `extra` as fields: `log.info("fold", extra={"seq": 7})`."""

    def __init__(self, service: str) -> None:
        super().__init__(json_default=lambda value: _clean(str(value)))
        self._service = service

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        """Put the fields of every line first; an `extra` of the same name does not replace them."""
        at = datetime.fromtimestamp(record.created, UTC)
        log_data |= {
            "at": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "message": _clean(record.getMessage()),
        }
        extra = merge_record_extra(record, {}, RESERVED | log_data.keys())
        log_data |= {name: _field(name, value) for name, value in extra.items()}
        if error := message_dict.get("exc_info"):
            log_data["error"] = _clean(error)


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
