"""Formats of public traces: by name, or detected from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from simulator.workload.errors import TraceError
from simulator.workload.files import peek
from simulator.workload.readers import acme, gpu2023, helios, itp, pai2020, parquet, philly, swf
from simulator.workload.table import Raw

Reader = Callable[[Path], Sequence[Raw]]


def _one(read: Callable[[Path], Raw]) -> Reader:
    return lambda path: [read(path)]


READERS: dict[str, Reader] = {
    "parquet": _one(parquet.read_raw),
    "philly": _one(philly.read_raw),
    "helios": _one(helios.read_raw),
    "pai2020": _one(pai2020.read_raw),
    "gpu2023": _one(gpu2023.read_raw),
    "itp": itp.read_raw,
    "acme": _one(acme.read_raw),
    "swf": _one(swf.read_raw),
}

# Each by columns that no other format has together.
_HEADERS = (
    ("helios", {"vc", "gpu_num", "submit_time"}),
    ("acme", {"type", "gpu_num", "submit_time"}),
    ("gpu2023", {"gpu_milli", "creation_time"}),
    ("itp", {"submission_time", "num_gpu"}),
)


def split(trace: str) -> tuple[str | None, str]:
    """Split `swf:log.gz` into format and path; a trace without a known format is all path."""
    name, colon, path = trace.partition(":")
    return (name, path) if colon and name in READERS else (None, trace)


def detect_format(path: Path) -> str:
    """Return the format of a file or folder, by its name and then by its beginning."""
    if path.is_dir():
        return _of_folder(path)
    if path.suffix == ".parquet":
        return "parquet"
    if path.name.startswith(pai2020.TASKS):
        return "pai2020"
    if {".swf", ".SWF"} & set(path.suffixes):
        return "swf"
    return _of_beginning(path, peek(path))


def _of_folder(path: Path) -> str:
    if pai2020.is_folder(path):
        return "pai2020"
    if (path / philly.LOG).is_file():
        return "philly"
    files = itp.files_in(path)
    if files and _of_beginning(files[0], peek(files[0])) == "itp":
        return "itp"
    raise _unknown(path)


def _of_beginning(path: Path, head: bytes) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    if not head.strip():
        raise TraceError(path, "is empty")
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    if text[0] in "[;":
        return "philly" if text[0] == "[" else "swf"
    names = {name.strip().strip('"') for name in text.partition("\n")[0].split(",")}
    for name, header in _HEADERS:
        if header <= names:
            return name
    raise _unknown(path)


def _unknown(path: Path) -> TraceError:
    formats = ", ".join(READERS)
    return TraceError(path, f"is in no known format; name one of {formats}, as in swf:{path}")
