"""Incarnations: when a new one begins, and its generation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth_agent.core.incarnation import (
    BootIncarnation,
    Machine,
    goes_on,
    may_register,
    next_incarnation,
    read_incarnation,
)
from berth_agent.messages import Incarnation

MACHINE = Machine("boot", "pid:[1]", "hardware")
GENERATIONS = st.integers(1, 10**6)


def incarnation_of(generation: int) -> BootIncarnation:
    incarnation = Incarnation(generation=generation, uuid="a" * 32)
    return BootIncarnation(incarnation, MACHINE.boot_id, MACHINE.pid_namespace)


@given(st.none() | GENERATIONS, st.integers(0, 10**6))
def test_a_new_generation_is_higher_than_all_known(own: int | None, last: int) -> None:
    new = next_incarnation(None if own is None else incarnation_of(own), last, "b" * 32, MACHINE)
    assert new.incarnation.generation == max(own or 0, last) + 1
    assert may_register(new, last) and new.incarnation.uuid == "b" * 32


def test_an_agent_that_restarts_goes_on() -> None:
    assert goes_on(incarnation_of(3), MACHINE)


def test_a_reboot_or_another_pid_namespace_is_the_end() -> None:
    assert not goes_on(incarnation_of(3), Machine("boot2", "pid:[1]", "hardware"))
    assert not goes_on(incarnation_of(3), Machine("boot", "pid:[2]", "hardware"))


@given(GENERATIONS)
def test_a_life_is_read_as_it_was_written(generation: int) -> None:
    assert read_incarnation(incarnation_of(generation).to_json()) == incarnation_of(generation)
