"""Logs as one JSON object per line on stderr, with fields instead of prose, without secrets."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
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
