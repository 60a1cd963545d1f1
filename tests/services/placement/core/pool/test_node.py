"""The room of a node for workers, and when two machines are one."""

from __future__ import annotations

from services.placement.core.pool.node import Machine
from services.placement.core.pool.shape import GPU, Shape
from tests.services.placement.core.pool.nodes import node


def shape(gpus: int, cpu_milli: int = 0, milli: int = GPU) -> Shape:
    return Shape(gpus, milli, cpu_milli, 0, (), (), 1, 1)


def test_a_node_holds_as_many_workers_as_its_scarcest_resource_allows() -> None:
    held = node("a")
    assert held.room(shape(2)) == 4
    assert held.room(shape(2, cpu_milli=30_000)) == 2
    assert held.kind.workers(shape(1, milli=250)) == 32


def test_workers_get_the_lowest_free_gpus() -> None:
    held = node("a", 4)
    held.free[0] = 500
    assert [slot.gpus for slot in held.slots(shape(1), 2)] == [(1,), (2,)]


def test_a_reboot_of_the_same_hardware_is_the_same_machine() -> None:
    held = Machine(1, "boot-1", "4026531836", "board")
    assert held.is_same(held._replace(boot_id="boot-2"))
    assert not held.is_same(held._replace(boot_id="boot-2", hardware="another"))
    assert not held.is_same(held._replace(pid_namespace="4026532000"))
