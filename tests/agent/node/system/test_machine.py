"""A machine keeps its identity when a GPU is replaced, fails, or appears late."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth_agent.node.system import machine

BOARD = "4c4c4544-0044-3610-8050-b4c04f4d3732"


class Hardware:
    """Files of the kernel and the driver that name board and GPUs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gpus, self.board = folder / "gpus", folder / "product_uuid"
        self.gpus.mkdir()
        monkeypatch.setattr(machine, "GPU_FOLDER", self.gpus)
        monkeypatch.setattr(machine, "BOARD", self.board)

    def put(self, address: str, uuid: str) -> None:
        (self.gpus / address).mkdir(exist_ok=True)
        (self.gpus / address / "information").write_text(f"Model: x\nGPU UUID: \t {uuid}\n")


@pytest.fixture
def hardware(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hardware:
    return Hardware(tmp_path, monkeypatch)


def test_a_replaced_gpu_leaves_the_same_machine(hardware: Hardware) -> None:
    hardware.board.write_text(BOARD)
    before_the_driver = machine.hardware()
    hardware.put("0000:01:00.0", "GPU-1")
    assert machine.hardware() == before_the_driver != ""
    hardware.put("0000:01:00.0", "GPU-2")
    assert machine.hardware() == before_the_driver
    hardware.board.write_text(BOARD.replace("4", "5"))
    assert machine.hardware() != before_the_driver


@pytest.mark.parametrize("board", ["", "00000000-0000-0000-0000-000000000000"])
def test_gpus_stand_for_a_board_without_an_identity(hardware: Hardware, board: str) -> None:
    hardware.board.write_text(board)
    assert machine.hardware() == ""
    hardware.put("0000:01:00.0", "GPU-1")
    of_gpus = machine.hardware()
    hardware.put("0000:01:00.0", "GPU-2")
    assert "" != of_gpus != machine.hardware()


def test_a_node_that_joined_by_an_earlier_rule_is_known(hardware: Hardware) -> None:
    hardware.put("0000:01:00.0", "GPU-1")
    joined_without_root = machine.hardware()
    hardware.board.write_text(BOARD)
    hashes = machine.hardware_hashes()
    assert len(hashes) == 3 and joined_without_root in hashes[1:]
    read = machine.read_machine()
    assert (read.hardware, *read.former_hardware) == tuple(hashes)


def test_a_gpu_that_does_not_answer_is_left_out(hardware: Hardware) -> None:
    hardware.put("0000:01:00.0", "GPU-1")
    (hardware.gpus / "0000:02:00.0").mkdir()
    assert machine.gpu_uuids() == ["GPU-1"]
