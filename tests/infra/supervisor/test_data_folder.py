"""A data folder belongs to one stack, and its operator key counts there."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.supervisor.data_folder import OtherStack, claim_folder
from infra.supervisor.running import OPERATOR_KEY, Broker, RunningStack, save


def ended_stack(data: Path, broker: Broker) -> Path:
    """Leave behind what a stack with this broker leaves; return the file of its key."""
    (data / broker / "state").mkdir(parents=True)
    save(
        RunningStack(
            data_dir=data,
            broker=broker,
            partitions=4,
            kafka="127.0.0.1:1",
            postgres="",
            gateway="http://127.0.0.1:2",
            llm="",
            otlp="",
            state=data / broker / "state",
            work=data / broker / "work",
            ports={},
        )
    )
    key = data / OPERATOR_KEY
    key.write_text("key")
    return key


@pytest.mark.parametrize("broker", ["kafka", "external"])
def test_a_durable_stack_takes_no_key_of_an_embedded_one_for_its_own(
    tmp_path: Path, broker: Broker
) -> None:
    key = ended_stack(tmp_path, "embedded")
    claim_folder(tmp_path, broker)
    assert not key.exists()


@pytest.mark.parametrize("broker", ["embedded", "kafka", "external"])
def test_the_next_start_of_a_stack_keeps_its_key(tmp_path: Path, broker: Broker) -> None:
    key = ended_stack(tmp_path, broker)
    claim_folder(tmp_path, broker)
    assert key.exists()


def test_a_new_folder_is_free_for_any_stack_and_keeps_a_restored_key(tmp_path: Path) -> None:
    key = tmp_path / OPERATOR_KEY
    key.write_text("of a backup")
    claim_folder(tmp_path, "kafka")
    assert key.exists()


@pytest.mark.parametrize(
    ("old", "new", "remedy"),
    [
        ("kafka", "embedded", "berth up --broker kafka"),
        ("external", "kafka", "berth up --broker HOST:PORT,..."),
    ],
)
def test_the_data_and_key_of_a_durable_stack_are_refused_to_another(
    tmp_path: Path, old: Broker, new: Broker, remedy: str
) -> None:
    key = ended_stack(tmp_path, old)
    with pytest.raises(OtherStack, match=f"broker {old}; .*{remedy}.*--data DIR"):
        claim_folder(tmp_path, new)
    assert key.exists()
