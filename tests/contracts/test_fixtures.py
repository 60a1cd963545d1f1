"""Every version of a message that was ever written can still be decoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.contracts.base import COMMANDS, EVENTS
from shared.contracts.codec import decode_command, decode_event, encode
from shared.contracts.generate import wire_models
from shared.contracts.upcast import UPCASTERS, Upcaster, upcast

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.json"))


def test_every_message_has_a_fixture_of_its_current_version() -> None:
    assert set(wire_models()) <= set(NAMES), "run python -m tests.contracts.examples"


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_message_can_still_be_decoded(name: str) -> None:
    data = (FIXTURES / f"{name}.json").read_bytes()
    newest, converted = upcast(name, data)
    if newest in EVENTS:
        message = decode_event(name, data)
    elif newest in COMMANDS:
        message = decode_command(name, data)  # type: ignore[assignment]
    else:
        message = wire_models()[newest].model_validate_json(converted)  # type: ignore[assignment]
    again = json.loads(encode(message))
    for field, value in json.loads(converted).items():
        assert holds(again[field], value), f"{name} lost or changed {field}"


def holds(again: Any, recorded: Any) -> bool:
    """Return whether every recorded value is unchanged; fields of later versions may be added."""
    if isinstance(recorded, dict):
        return all(key in again and holds(again[key], value) for key, value in recorded.items())
    if isinstance(recorded, list):
        pairs = zip(again, recorded, strict=False)
        return len(again) == len(recorded) and all(holds(a, r) for a, r in pairs)
    return bool(again == recorded)


@pytest.mark.parametrize("name", sorted(set(NAMES) & set(EVENTS)))
def test_a_field_of_a_newer_writer_is_ignored(name: str) -> None:
    payload = json.loads((FIXTURES / f"{name}.json").read_bytes())
    plain = decode_event(name, json.dumps(payload).encode())
    assert decode_event(name, json.dumps({**payload, "added_later": 1}).encode()) == plain


def test_an_old_version_is_converted_step_by_step() -> None:
    def hours_to_seconds(payload: dict[str, object]) -> dict[str, object]:
        hours = payload.pop("hours")
        assert isinstance(hours, int)
        return {**payload, "time_s": hours * 3600}

    def renamed(payload: dict[str, object]) -> dict[str, object]:
        return {"duration_s": payload["time_s"]}

    chain: dict[str, tuple[str, Upcaster]] = {
        "job.ran.v1": ("job.ran.v2", hours_to_seconds),
        "job.ran.v2": ("job.ran.v3", renamed),
    }
    name, data = upcast("job.ran.v1", b'{"hours": 2}', chain)
    assert (name, json.loads(data)) == ("job.ran.v3", {"duration_s": 7200})


def test_upcasters_end_at_a_known_message() -> None:
    for old in UPCASTERS:
        data = (FIXTURES / f"{old}.json").read_bytes()
        assert upcast(old, data)[0] in wire_models()
