"""Text of supervisord's configuration: one section per process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

GROUP = "services"
EXIT_PROTOCOL = 71
"""Exit code of `shared.bus.fatal`."""
LOG_SIZE = "10MB"


@dataclass(frozen=True, slots=True)
class Program:
    """A supervised process; a part starts with the supervisor, a service on request."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    is_part: bool = False
    restarts: bool = True
    stop_signal: str = "TERM"
    stop_wait_s: int = 10


def render(base: Path, control: Path, programs: Sequence[Program]) -> str:
    """Return the configuration; `control` is the unix socket of the supervisor's API."""
    services = [program.name for program in programs if not program.is_part]
    sections = [_head(base, control), *(_section(base, program) for program in programs)]
    if services:
        # One group stops all its members at once; groups stop one after the other.
        names = ",".join(services)
        sections.append(_lines(f"group:{GROUP}", {"programs": names, "priority": "20"}))
    return "\n".join(sections)


def _head(base: Path, control: Path) -> str:
    return "\n".join(
        [
            _lines("unix_http_server", {"file": str(control), "chmod": "0700"}),
            _lines(
                "supervisord",
                {
                    "logfile": str(base / "logs" / "supervisord.log"),
                    "logfile_maxbytes": LOG_SIZE,
                    "logfile_backups": "1",
                    "pidfile": str(base / "supervisord.pid"),
                    "childlogdir": str(base / "logs"),
                    "nodaemon": "true",
                    "silent": "true",
                    "umask": "077",
                    "minfds": "1024",
                },
            ),
            "[rpcinterface:supervisor]\n"
            "supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface\n",
        ]
    )


def _section(base: Path, program: Program) -> str:
    return _lines(
        f"program:{program.name}",
        {
            "command": " ".join(_quoted(word) for word in program.command),
            "environment": ",".join(f"{k}={_quoted(v)}" for k, v in program.environment.items()),
            "directory": str(base),
            "autostart": str(program.is_part).lower(),
            # What ends because of a broken ledger would only end again: people must look.
            "autorestart": "unexpected" if program.restarts else "false",
            "exitcodes": str(EXIT_PROTOCOL),
            "startsecs": "1",
            "startretries": "1000000",
            "stopsignal": program.stop_signal,
            "stopwaitsecs": str(program.stop_wait_s),
            "killasgroup": "true",
            "priority": "10",
            "redirect_stderr": "true",
            "stdout_logfile": str(base / "logs" / f"{program.name}.log"),
            "stdout_logfile_maxbytes": LOG_SIZE,
            "stdout_logfile_backups": "2",
        },
    )


def _lines(title: str, values: Mapping[str, str]) -> str:
    # supervisord expands %(name)s, except in what it has quoted already.
    body = "".join(f"{name} = {value.replace('%', '%%')}\n" for name, value in values.items())
    return f"[{title}]\n{body}"


def _quoted(word: str) -> str:
    for sign in ('"', "'", "\\", "\n", "\r", " ;", " #"):
        if sign in word:
            raise ValueError(f"{sign!r} cannot be passed to supervisord, in {word!r}")
    return f'"{word}"'
