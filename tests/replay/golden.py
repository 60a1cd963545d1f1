"""Recorded calls as files: small, exact, and readable with `xz -dc`."""

from __future__ import annotations

import dataclasses
import hashlib
import lzma
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from pydantic import BaseModel

from shared.contracts.base import Command, Event
from shared.contracts.codec import decode_command, decode_event, encode
from shared.contracts.reports import ExecutorReported, NodesSilent
from shared.contracts.solver_plan import PlanReady
from shared.ledger.decider import Decision, Input, Undecodable
from tests.replay.cluster import DecideCall

TEXT = "detail"
"""Field of an event that holds a sentence for people (or numbers, which are compared)."""
FOLDER = Path(__file__).parent / "golden"
OTHERS = {cls.__name__: cls for cls in (ExecutorReported, NodesSilent, PlanReady)}


def path_of(ledger: str, folder: Path = FOLDER) -> Path:
    return folder / f"{ledger}.jsonl.xz"


def write(path: Path, calls: Iterable[DecideCall], state: object) -> None:
    """A line per call; the last line is the hash of the state after all of them."""
    lines = [msgspec.json.encode(_packed(call)) for call in calls]
    lines.append(msgspec.json.encode({"state": state_hash(state)}))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress(b"\n".join(lines)))


def read(path: Path) -> tuple[list[DecideCall], str]:
    *lines, last = lzma.decompress(path.read_bytes()).split(b"\n")
    calls = [_unpacked(msgspec.json.decode(line)) for line in lines]
    return calls, msgspec.json.decode(last)["state"]


def _packed(call: DecideCall) -> list[Any]:
    inputs = [_input(item) for item in call.inputs]
    return [call.seq, call.index, call.now, inputs, [decided(d) for d in call.decisions]]


def decided(decision: Decision) -> list[Any]:
    """Encode as on the wire, so that a change of a default shows as well."""
    event, cause, trace = decision
    return [event.TYPE, msgspec.Raw(encode(event)), cause, trace]


def compared(decision: Decision) -> list[Any]:
    """Return what a replay must repeat: all of a decision but the text that is for people."""
    event, cause, trace = decision
    data = msgspec.json.decode(encode(event))
    if isinstance(data.get(TEXT), str):
        del data[TEXT]
    return [event.TYPE, rounded(data), cause, trace]


def rounded(value: Any) -> Any:
    """Return JSON with nine digits: the last ones of a logarithm depend on the machine."""
    match value:
        case float():
            return float(f"{value:.9g}")
        case dict():
            return {key: rounded(part) for key, part in value.items()}
        case list():
            return [rounded(part) for part in value]
        case _:
            return value


def _input(item: Input) -> list[Any]:
    message = item.message
    if isinstance(message, Undecodable):
        data: object = dataclasses.asdict(message)
        type_ = "Undecodable"
    else:
        type_ = message.TYPE if isinstance(message, Event | Command) else type(message).__name__
        data = msgspec.Raw(encode(message))
    rest = [item.source, item.id, item.at, item.traceparent, item.subject, item.tenant, item.place]
    return [type_, data, *rest]


def _unpacked(line: list[Any]) -> DecideCall:
    seq, index, now, inputs, decisions = line
    return DecideCall(
        seq,
        index,
        now,
        [_input_of(*item) for item in inputs],
        [Decision(decode_event(type_, _raw(data)), *rest) for type_, data, *rest in decisions],
    )


def _input_of(type_: str, data: Any, source: str, id: str, at: int, *rest: str) -> Input:
    traceparent, subject, tenant, place = rest
    return Input(source, id, _message(source, type_, data), at, traceparent, subject, tenant, place)


def _message(source: str, type_: str, data: Any) -> Any:
    if type_ == "Undecodable":
        return Undecodable(**data)
    if type_ in OTHERS:
        return OTHERS[type_].model_validate(data)
    return (decode_command if source == "commands" else decode_event)(type_, _raw(data))


def _raw(data: object) -> bytes:
    return msgspec.json.encode(data)


def state_hash(state: object) -> str:
    """Return the SHA-256 of the state's content.

    Names of classes and attributes do not count, so that a refactoring that renames them keeps the
    recorded hash; neither do the order of a set nor the addresses of objects.
    """
    return _digest(state, ()).hex()


def _digest(value: object, above: tuple[int, ...]) -> bytes:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, float):
        value = rounded(value)
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return hashlib.sha256(repr(value).encode()).digest()
    if id(value) in above:
        return b""
    inside = (*above, id(value))
    parts = [_digest(part, inside) for part in _parts(value)]
    if not isinstance(value, BaseModel | Mapping | np.ndarray | list | tuple | deque):
        parts.sort()
    return hashlib.sha256(b"(" + b",".join(parts) + b")").digest()


def _parts(value: Any) -> Iterator[object]:
    match value:
        case BaseModel():
            yield value.model_dump(mode="json")
        case Mapping():
            for pair in value.items():
                yield from pair
        case np.ndarray():
            yield value.shape
            yield from value.ravel().tolist()
        case list() | tuple() | deque() | set() | frozenset():
            yield from value
        case _:
            yield from (getattr(value, name) for name in _names(value))


def _names(value: Any) -> list[str]:
    """A field that is not compared is a memo of the others."""
    if dataclasses.is_dataclass(value):
        return [entry.name for entry in dataclasses.fields(value) if entry.compare]
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
    return sorted({*slots, *getattr(value, "__dict__", ())})
