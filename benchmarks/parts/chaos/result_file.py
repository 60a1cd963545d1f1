"""Results of chaos runs in one file; a run replaces the parts that it measured, as it goes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks.parts.chaos.other_figures import read_others
from benchmarks.parts.chaos.page import render_page

Results = dict[str, Any]

RESULTS, PAGE, FUZZ = "chaos.json", "chaos.md", "fuzz.json"


@dataclass(slots=True)
class ResultFile:
    """Results of this run and of earlier ones; a run that is cut short has figures but no `end`."""

    folder: Path | None
    """None keeps the results in memory only."""
    command: str
    settings: Mapping[str, object]
    began: float = field(default_factory=time.time)
    data: Results = field(default_factory=dict)

    def __post_init__(self) -> None:
        path = self.folder / RESULTS if self.folder else None
        earlier = json.loads(path.read_text()) if path and path.exists() else {}
        self.data = {"bench": "chaos", "runs": {}, "parts": {}, "simulation": {}, "checks": {}}
        self.data |= earlier

    @property
    def run_id(self) -> str:
        return datetime.fromtimestamp(self.began, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def run(self) -> Results:
        """The entry of this run."""
        entry: Results = self.data["runs"].setdefault(self.run_id, {})
        return entry

    def store_part(self, part: str, figures: Mapping[str, object]) -> None:
        """Store the figures of a part, final or so far."""
        self.data["parts"][part] = {**figures, "run": self.run_id}
        self.save()

    def store_verdict(self, end: Mapping[str, object]) -> None:
        self.run["end"] = dict(end)
        self.save()

    def save(self) -> None:
        """Write both files, with an entry of this run if it measured any part."""
        if self.run_id in self.data["runs"] or self._has_parts():
            self.run.update(
                command=self.command,
                settings=dict(self.settings),
                cores=os.cpu_count(),
                load_1m=round(os.getloadavg()[0], 1),
                wall_s=round(time.time() - self.began),
            )
        used = {part.get("run") for part in self.data["parts"].values()} | {self.run_id}
        self.data["runs"] = {k: v for k, v in sorted(self.data["runs"].items()) if k in used}
        if self.folder is not None:
            write_files(self.data, self.folder)

    def _has_parts(self) -> bool:
        return any(part.get("run") == self.run_id for part in self.data["parts"].values())


def write_files(result: Results, folder: Path) -> None:
    """Write chaos.json and chaos.md, each by an atomic rename."""
    folder.mkdir(parents=True, exist_ok=True)
    fuzz = folder / FUZZ
    judged = {**result, "others": read_others(folder)}
    page = render_page(judged, json.loads(fuzz.read_text()) if fuzz.exists() else {})
    for name, text in ((RESULTS, json.dumps(result, indent=1) + "\n"), (PAGE, page)):
        new = folder / f".{name}"
        new.write_text(text)
        new.replace(folder / name)


def read_checks(path: Path) -> Results:
    """Return tests, failures and skips of each test file in a JUnit report of pytest, and what its
    tests have recorded.
    """
    checks: Results = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        entry = checks.setdefault(
            case.get("classname", ""), {"tests": 0, "failed": 0, "skipped": 0}
        )
        entry["tests"] += 1
        entry["failed"] += bool(kinds & {"failure", "error"})
        entry["skipped"] += "skipped" in kinds
        for recorded in case.iter("property"):
            entry.setdefault("recorded", {})[recorded.get("name", "")] = recorded.get("value", "")
    return checks
