"""Requests of a user are counted from an audit log, each line once."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.parts.kubernetes.requests import AuditLog


def line(user: str, verb: str, resource: str = "", part: str = "") -> str:
    target = {"resource": resource, "subresource": part} if resource else None
    event = {"user": {"username": user}, "verb": verb, "objectRef": target}
    return json.dumps({**event, "requestURI": "/readyz?verbose"}) + "\n"


def test_requests_are_by_verb_and_resource_since_the_last_look(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text(line("a", "create", "pods", "binding") * 2 + line("b", "get", "pods"))
    log = AuditLog(path)
    assert log.take("a") == {"create pods/binding": 2}
    whole, half = line("a", "get"), line("a", "patch", "pods")
    with path.open("a") as file:
        file.write(whole + half[:20])
    assert log.take("a") == {"get /readyz": 1}
    with path.open("a") as file:
        file.write(half[20:])
    assert log.take("a") == {"patch pods": 1}
