"""A simulation's folder: a file per topic, and a manifest with their digests, written last."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.bus.logs.memory import MemoryBroker
from shared.contracts.topics import LEDGERS
from shared.ledger import cloudevents
from shared.ledger.partition import TP
from shared.ledger.record import decode
from simulator.engine.lane import LANE

TOPICS = (*LEDGERS, "commands", "reports", "events")
"""All topics that a simulation writes."""
MANIFEST = "simulation.json"
FORMAT = 1


class InvalidRecording(ValueError):
    """Raised if the folder holds no complete simulation, with the file and the rule it breaks."""


class TopicFile(BaseModel):
    """File of one topic: line n is the value at offset n."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str
    records: int = Field(ge=0)
    sha256: str

    @property
    def tp(self) -> TP:
        return TP(self.topic, LANE)

    @property
    def name(self) -> str:
        return f"{self.tp.key}.jsonl"


class RecordedReport(BaseModel):
    """Report of `berth simulate`, as far as it is needed here."""

    model_config = ConfigDict(frozen=True, extra="allow")

    jobs: int
    nodes: int
    gpus_per_node: int
    policy: str
    learned: str | None = None
    mode: str
    time_scale: float = Field(gt=0, description="cluster s per s of the pool's clock")


class Recording(BaseModel):
    """Manifest of a recorded simulation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    files: tuple[TopicFile, ...]
    first_ms: int = Field(description="when the first job was submitted, on the simulated clock")
    report: RecordedReport

    @property
    def records(self) -> int:
        return sum(file.records for file in self.files)

    def moment_ms(self, cluster_s: float) -> int:
        """Return the simulated clock so many cluster seconds after the first submission."""
        return self.first_ms + round(cluster_s * 1000 / self.report.time_scale)


def record(broker: MemoryBroker, folder: Path, report: Mapping[str, Any]) -> list[Path]:
    """Write all files, the manifest last; return the paths of the topics' files."""
    (folder / MANIFEST).unlink(missing_ok=True)
    paths = dump(broker, folder)
    files = tuple(_file(folder, topic) for topic in TOPICS)
    first_ms = _written_ms(broker.entries(TP("commands", LANE))[0].value)
    recording = Recording(
        files=files, first_ms=first_ms, report=RecordedReport.model_validate(report)
    )
    (folder / MANIFEST).write_text(recording.model_dump_json(indent=2) + "\n")
    return paths


def dump(broker: MemoryBroker, folder: Path) -> list[Path]:
    """Write a file `<topic>-<partition>.jsonl` per topic: line n is the value at offset n."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_written(broker, topic, folder) for topic in TOPICS]


def restore_broker(folder: Path, topics: Iterable[str] = TOPICS) -> MemoryBroker:
    """Return the broker that `dump` wrote, without keys."""
    broker = MemoryBroker()
    for topic in topics:
        path = folder / f"{TP(topic, LANE).key}.jsonl"
        for line in path.read_bytes().splitlines():
            broker.append(TP(topic, LANE), line)
    return broker


def open_recording(folder: Path) -> Recording:
    """Return the manifest after checking every file against it. Raises InvalidRecording."""
    if not folder.is_dir():
        raise InvalidRecording(f"{folder}: must be a folder that `berth simulate --out` wrote")
    recording = _manifest(folder / MANIFEST)
    for file in recording.files:
        _check(folder, file)
    return recording


def read_values(folder: Path, file: TopicFile, until_ms: int | None = None) -> Iterator[bytes]:
    """Yield the records of one topic, in order.

    With `until_ms` only those written by then: everything at one ms is decided before the clock
    moves, so that they refer to nothing that is left out.
    """
    with (folder / file.name).open("rb") as lines:
        for line in lines:
            value = line.removesuffix(b"\n")
            if until_ms is None or _written_ms(value) <= until_ms:
                yield value


def last_moment_ms(folder: Path, recording: Recording, until_ms: int | None = None) -> int:
    """Return when the last record was written, ms, or `until_ms` if that is earlier."""
    last_ms = max(_last_written_ms(folder / file.name) for file in recording.files)
    return last_ms if until_ms is None else min(last_ms, until_ms)


def _last_written_ms(path: Path) -> int:
    """Return the time of the last record of a file; 0 for an empty one."""
    with path.open("rb") as lines:
        last = deque(lines, maxlen=1)
    return _written_ms(last[0].removesuffix(b"\n")) if last else 0


def _written_ms(value: bytes | None) -> int:
    """Return the time of a ledger's record or of a message."""
    record = decode(value)
    return cloudevents.decode(value).at if record is None else record.at


def _manifest(path: Path) -> Recording:
    try:
        recording = Recording.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        advice = "missing; `berth simulate --out` writes it last, once all else is there"
        raise InvalidRecording(f"{path}: {advice}") from None
    except OSError as error:
        raise InvalidRecording(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InvalidRecording(f"{path}: {where}: {first['msg']}") from None
    if recording.format != FORMAT:
        raise InvalidRecording(f"{path}: format: must be {FORMAT}, not {recording.format}")
    if (topics := tuple(file.topic for file in recording.files)) != TOPICS:
        raise InvalidRecording(f"{path}: files: must be of {', '.join(TOPICS)}, not {topics}")
    return recording


def _check(folder: Path, expected: TopicFile) -> None:
    path = folder / expected.name
    try:
        file = _file(folder, expected.topic)
    except OSError as error:
        raise InvalidRecording(f"{path}: {error.strerror}") from None
    if file.records != expected.records:
        extent = f"holds {file.records} records, must hold {expected.records}"
        raise InvalidRecording(f"{path}: {extent}, as {MANIFEST} says")
    if file.sha256 != expected.sha256:
        raise InvalidRecording(
            f"{path}: its sha256 must be that of {MANIFEST}: it was changed or cut"
        )


def _written(broker: MemoryBroker, topic: str, folder: Path) -> Path:
    path = folder / f"{TP(topic, LANE).key}.jsonl"
    with path.open("wb") as out:
        for entry in broker.entries(TP(topic, LANE)):
            out.write((entry.value or b"") + b"\n")
    return path


def _file(folder: Path, topic: str) -> TopicFile:
    digest, records = hashlib.sha256(), 0
    with (folder / f"{TP(topic, LANE).key}.jsonl").open("rb") as lines:
        for line in lines:
            digest.update(line)
            records += line.endswith(b"\n")
    return TopicFile(topic=topic, records=records, sha256=digest.hexdigest())
