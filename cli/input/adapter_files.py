"""Files of `berth endpoints plan`: adapters with their loads, and the present plan."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cli.errors import BadInput

if TYPE_CHECKING:
    from simulator.llm.adapters.loads import AdapterLoad

Row = dict[str, object]
MOST_ADAPTERS = 2000
MOST_NAME = 253
RANKS = (8, 16, 32)
NUMBERS: dict[str, tuple[float, float]] = {
    "rate_per_s": (1e-6, 1000.0),
    "prompt_tokens": (1, 131_072),
    "output_tokens": (1, 131_072),
    "cv": (0.1, 10.0),
}
"""The least and the most of each number; `cv` is optional."""
COLUMNS = ("adapter", "rank", "rate_per_s", "prompt_tokens", "output_tokens")


def read_adapters(path: Path) -> list[AdapterLoad]:
    """Read adapters from CSV with a header, or a JSON list of objects. Raises BadInput."""
    from simulator.llm.adapters.loads import AdapterLoad

    loads: dict[str, AdapterLoad] = {}
    for place, row in _rows(path, (*COLUMNS, "cv"), COLUMNS):
        name = _name(place, row, "adapter")
        if name in loads:
            raise BadInput(f"{place}, adapter: {name}; a name that occurs once is allowed")
        numbers = {
            field: _number(place, field, row[field], *NUMBERS[field])
            for field in NUMBERS
            if row.get(field) not in (None, "")
        }
        loads[name] = AdapterLoad(adapter=name, rank=_rank(place, row["rank"]), **numbers)
    if len(loads) > MOST_ADAPTERS:
        raise BadInput(f"{path}: {len(loads)} adapters; at most {MOST_ADAPTERS} are allowed")
    return list(loads.values())


def read_present(path: Path) -> dict[str, tuple[str, ...]]:
    """Read engines and their adapters: CSV with `engine,adapter`, or what `--json` printed.

    Raises BadInput.
    """
    placed: dict[str, list[str]] = {}
    seen: set[str] = set()
    for place, row in _present_rows(path):
        engine, adapter = _name(place, row, "engine"), _name(place, row, "adapter")
        if adapter in seen:
            raise BadInput(f"{place}, adapter: {adapter}; one engine per adapter is allowed")
        seen.add(adapter)
        placed.setdefault(engine, []).append(adapter)
    return {engine: tuple(adapters) for engine, adapters in placed.items()}


def _present_rows(path: Path) -> Iterator[tuple[str, Row]]:
    if path.suffix.lower() != ".json":
        yield from _rows(path, ("engine", "adapter"), ("engine", "adapter"))
        return
    document = _json(path)
    engines = document.get("engines") if isinstance(document, dict) else None
    if not isinstance(engines, list):
        raise BadInput(f"{path}: no list `engines`; the output of --json is allowed")
    for number, engine in enumerate(engines, 1):
        place = f"{path}: engines, row {number}"
        if not isinstance(engine, dict) or not isinstance(engine.get("adapters"), list):
            raise BadInput(f"{place}, adapters: a list of names is allowed")
        for adapter in engine["adapters"]:
            yield place, {"engine": engine.get("engine"), "adapter": adapter}


def _rows(path: Path, known: tuple[str, ...], needed: tuple[str, ...]) -> Iterator[tuple[str, Row]]:
    """Yield the place of each row and its fields; raises BadInput for names of fields."""
    source = _json_rows if path.suffix.lower() == ".json" else _csv_rows
    count = 0
    for number, row in source(path):
        count += 1
        place = f"{path}: row {number}"
        for field in row:
            if field not in known:
                raise BadInput(f"{place}: unknown field: {field}; {', '.join(known)} are allowed")
        for field in needed:
            if row.get(field) in (None, ""):
                raise BadInput(f"{place}, {field}: no value; it is required")
        yield place, row
    if not count:
        raise BadInput(f"{path}: no rows; one or more are required")


def _csv_rows(path: Path) -> Iterator[tuple[int, Row]]:
    reader = csv.DictReader(_text(path).splitlines(), restkey="more fields than columns")
    try:
        for row in reader:
            yield reader.line_num, {str(name).strip(): value for name, value in row.items()}
    except csv.Error as error:
        raise BadInput(f"{path}: row {reader.line_num}: invalid CSV: {error}") from None


def _json_rows(path: Path) -> Iterator[tuple[int, Row]]:
    document = _json(path)
    if not isinstance(document, list):
        raise BadInput(f"{path}: a list of objects is allowed")
    for number, row in enumerate(document, 1):
        if not isinstance(row, dict):
            raise BadInput(f"{path}: row {number}: {row!r}; an object is allowed")
        yield number, row


def _json(path: Path) -> object:
    refuse: Callable[[str], float] = _refuse_constant
    try:
        return json.loads(_text(path), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: invalid JSON: {error}") from None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None


def _name(place: str, row: Row, field: str) -> str:
    value = row.get(field)
    name = value.strip() if isinstance(value, str) else ""
    if not name or len(name) > MOST_NAME or not name.isprintable():
        raise BadInput(
            f"{place}, {field}: {value!r}; printable text of 1 to {MOST_NAME} characters is allowed"
        )
    return name


def _rank(place: str, value: object) -> int:
    for rank in RANKS:
        if value == rank or (isinstance(value, str) and value.strip() == str(rank)):
            return rank
    raise BadInput(f"{place}, rank: {value!r}; one of {', '.join(map(str, RANKS))} is allowed")


def _number(place: str, field: str, value: object, least: float, most: float) -> float:
    rule = f"a number from {least:g} to {most:,g} is allowed"
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        number = float(value)
    except (ValueError, OverflowError):
        raise BadInput(f"{place}, {field}: {value!r}; {rule}") from None
    if not math.isfinite(number) or not least <= number <= most:
        raise BadInput(f"{place}, {field}: {value}; {rule}")
    return number
