"""Logs as one JSON object per line on stderr, without secrets."""

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
    """Let the root logger write JSON lines to `stream`, by default stderr."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLineFormatter(service))
    handler.addFilter(FloodGate())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())


def log_uncaught_errors() -> None:
    """Log uncaught errors and warnings, which Python would print as plain text."""
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_a_thread
    sys.unraisablehook = _unraisable
    logging.captureWarnings(True)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.critical("process ends", exc_info=(kind, error, trace))


def _uncaught_in_a_thread(args: threading.ExceptHookArgs) -> None:
    error = args.exc_value or args.exc_type()
    name = args.thread.name if args.thread else ""
    extra = {"thread_name": name}
    log.error("thread ended", exc_info=(args.exc_type, error, args.exc_traceback), extra=extra)


def _unraisable(args: sys.UnraisableHookArgs) -> None:
    error = args.exc_value or args.exc_type()
    extra = {"where": repr(args.object)}
    message = args.err_msg or "error that could not be raised"
    log.error(message, exc_info=(args.exc_type, error, args.exc_traceback), extra=extra)


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
    return SECRET_TEXT.sub(lambda match: f"{_prefix(match)}{HIDDEN}", text)


def _prefix(match: re.Match[str]) -> str:
    return match["url"] or match["bearer"] or match["pair"]
