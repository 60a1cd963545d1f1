"""What chaos runs have found, in one file: a run replaces the parts that it made, as it goes."""

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

from benchmarks.parts.chaos_page import page

Json = dict[str, Any]

KEPT, PAGE, FUZZ = "chaos.json", "chaos.md", "fuzz.json"


@dataclass(slots=True)
class Kept:
    """A run that is cut short leaves what it had reached, and no `end`: nothing judged it."""

    folder: Path | None
    """None keeps it in memory only."""
    command: str
    settings: Mapping[str, object]
    began: float = field(default_factory=time.time)
    all: Json = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = self.folder / KEPT if self.folder else None
        known = json.loads(kept.read_text()) if kept and kept.exists() else {}
        self.all = {"bench": "chaos", "runs": {}, "parts": {}, "simulation": {}, "checks": {}}
        self.all |= known

    @property
    def id(self) -> str:
        return datetime.fromtimestamp(self.began, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def run(self) -> Json:
        """This run's own entry."""
        entry: Json = self.all["runs"].setdefault(self.id, {})
        return entry

    def note(self, part: str, figures: Mapping[str, object]) -> None:
        """Of a part that goes on, or has ended."""
        self.all["parts"][part] = {**figures, "run": self.id}
        self.save()

    def judged(self, end: Mapping[str, object]) -> None:
        self.run["end"] = dict(end)
        self.save()

    def save(self) -> None:
        """With the run's own figures, if it has made any part."""
        if self.id in self.all["runs"] or self._made():
            self.run.update(
                command=self.command,
                settings=dict(self.settings),
                cores=os.cpu_count(),
                load_1m=round(os.getloadavg()[0], 1),
                wall_s=round(time.time() - self.began),
            )
        used = {each.get("run") for each in self.all["parts"].values()} | {self.id}
        self.all["runs"] = {k: v for k, v in sorted(self.all["runs"].items()) if k in used}
        if self.folder is not None:
            publish(self.all, self.folder)

    def _made(self) -> bool:
        return any(each.get("run") == self.id for each in self.all["parts"].values())


def publish(result: Json, folder: Path) -> None:
    """Both files; each appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    fuzz = folder / FUZZ
    told = page(result, json.loads(fuzz.read_text()) if fuzz.exists() else {})
    for name, text in ((KEPT, json.dumps(result, indent=1) + "\n"), (PAGE, told)):
        new = folder / f".{name}"
        new.write_text(text)
        new.replace(folder / name)


def checked(path: Path) -> Json:
    """Per test file of a JUnit report of pytest: tests, those that failed, those left out."""
    found: Json = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        entry = found.setdefault(case.get("classname", ""), {"tests": 0, "failed": 0, "skipped": 0})
        entry["tests"] += 1
        entry["failed"] += bool(kinds & {"failure", "error"})
        entry["skipped"] += "skipped" in kinds
    return found
