"""A number means one MIG instance from the registration of an incarnation to its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth_agent import file_names
from berth_agent.linux.nvml import Nvml
from berth_agent.messages import GpuReading
from berth_agent.node.config import Config, ConfigError
from berth_agent.node.system.inventory import Inventory
from berth_agent.step.checks import StartRefused


class Driver(Nvml):
    """A driver with one GPU, whose instances an operator changes."""

    def __init__(self, *uuids: str) -> None:
        self.uuids = uuids

    def readings(self) -> tuple[GpuReading, ...]:
        profiles = ("1g.10gb",) * len(self.uuids)
        count = len(self.uuids)
        return (
            GpuReading(gpu=0, mig_instances=count, mig_uuids=self.uuids, mig_profiles=profiles),
        )


def an_inventory(run: Path, driver: Nvml, **settings: object) -> Inventory:
    return Inventory(Config(run=str(run), gpu_type="h100-1g.10gb", **settings), driver)  # type: ignore[arg-type]


def test_each_instance_is_a_gpu_and_known_by_its_uuid(tmp_path: Path) -> None:
    inventory = an_inventory(tmp_path, Driver("MIG-a", "MIG-b", "MIG-c"), unusable_gpus=(1,))
    inventory.register("i1")
    assert (inventory.count, inventory.unusable) == (3, frozenset({1}))
    assert inventory.devices((2, 0)) == ("MIG-c", "MIG-a")
    assert inventory.lacking((0, 2)) == ""
    assert inventory.lacking((1, 3)) == "GPUs [1, 3]: not usable; the machine has 3"
    with pytest.raises(StartRefused, match="no_such_gpu: GPUs .3.: no instance of 1g.10gb"):
        inventory.devices((0, 3))


def test_a_number_keeps_its_instance_over_a_restart_and_a_change(tmp_path: Path) -> None:
    driver = Driver("MIG-a", "MIG-b")
    an_inventory(tmp_path, driver).register("i1")
    driver.uuids = ("MIG-new", "MIG-b")
    again = an_inventory(tmp_path, driver)
    again.take_up("i1")
    again.register("i1")
    assert again.devices((0, 1)) == ("MIG-a", "MIG-b")
    again.note(driver.readings())
    assert again.lacking((0,)) and not again.lacking((1,))
    again.note(())
    assert again.lacking((0,)), "without a reading nothing is known"
    again.register("i2")
    assert again.devices((0, 1)) == ("MIG-new", "MIG-b")
    assert not again.lacking((0, 1))


def test_an_instance_keeps_its_number_when_the_node_joins_anew(tmp_path: Path) -> None:
    """A process that could not be killed is known by that number, and its GPU is not offered."""
    driver = Driver("MIG-a", "MIG-b", "MIG-c", "MIG-d")
    an_inventory(tmp_path, driver).register("i1")
    driver.uuids = ("MIG-c",)
    again = an_inventory(tmp_path, driver)
    again.register("i2")
    assert (again.count, again.unusable, again.devices((2,))) == (3, frozenset({0, 1}), ("MIG-c",))
    again.note(driver.readings())
    assert again.lacking((2,)) == "" and again.lacking((0,))
    with pytest.raises(StartRefused):
        again.devices((0,))
    driver.uuids = ("MIG-new", "MIG-c")
    again.register("i3")
    assert again.devices((0, 2)) == ("MIG-new", "MIG-c")


def test_declared_instances_that_are_not_there_are_not_offered(tmp_path: Path) -> None:
    few = an_inventory(tmp_path, Driver("MIG-a"), gpus=3)
    few.register("i1")
    assert (few.count, few.unusable, few.lacking((0,))) == (3, frozenset({1, 2}), "")
    many = an_inventory(tmp_path, Driver("MIG-a", "MIG-b"), gpus=1)
    many.register("i2")
    assert (many.count, many.devices((0,))) == (1, ("MIG-a",))


def test_an_agent_does_not_start_before_there_is_an_instance(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no instance of 1g.10gb is there: .*nvidia-smi mig"):
        an_inventory(tmp_path, Driver()).take_up("i1")
    an_inventory(tmp_path, Driver("MIG-a")).register("i1")
    an_inventory(tmp_path, Driver()).take_up("i1")
    an_inventory(tmp_path, Driver(), gpus=0).take_up("i2")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"incarnation": "i1", "instances": [["x"]]}'])
def test_a_damaged_file_gives_no_instance_to_a_worker(tmp_path: Path, content: str) -> None:
    (tmp_path / file_names.INSTANCES).write_text(content)
    inventory = an_inventory(tmp_path, Driver("MIG-a"))
    inventory.take_up("i1")
    assert inventory.lacking((0,)) and inventory.count == 0


def test_whole_gpus_are_known_by_their_numbers(tmp_path: Path) -> None:
    inventory = Inventory(Config(run=str(tmp_path), gpu_type="h100", gpus=2, unusable_gpus=(0,)))
    inventory.take_up("i1")
    inventory.register("i1")
    assert inventory.nvml is None and not (tmp_path / file_names.INSTANCES).exists()
    assert (inventory.count, inventory.devices((0, 1))) == (2, ("0", "1"))
    assert inventory.lacking((0, 1)) == "GPUs [0]: not usable; the machine has 2"
