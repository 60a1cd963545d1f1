"""The flags of `berth simulate` have the defaults of the simulation's options."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cli.commands.simulate import heading
from cli.errors import BadInput
from cli.main import app
from shared.contracts.pools import default_of
from simulator.engine.options import SimulationOptions

OPTIONS = {field.name for field in fields(SimulationOptions)} - {"faults"}
"""`--faults` names a file of what the option holds."""
SETTINGS = {
    "runtime",
    "queue_mode",
    "preemption",
    "min_residency_s",
    "large_gang_share",
    "defragment_after_s",
}


@pytest.fixture(scope="module")
def defaults() -> dict[str, Any]:
    command: Any = get_command(app)
    context = command.commands["simulate"].make_context("simulate", [])
    values: dict[str, Any] = context.params
    return values


@pytest.mark.parametrize("option", sorted(OPTIONS))
def test_each_option_has_a_flag_with_its_default(defaults: dict[str, Any], option: str) -> None:
    assert defaults[option] == getattr(SimulationOptions(), option)


@pytest.mark.parametrize("setting", sorted(SETTINGS))
def test_a_flag_of_a_pool_setting_has_the_default_of_pools(
    defaults: dict[str, Any], setting: str
) -> None:
    assert defaults[setting] == default_of(setting)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--margin", "-1"], "preempt_margin"),
        (["--large-gang-share", "2"], "large_gang_share"),
        (["--time-scale", "0"], "time_scale"),
        (["--policy", "alphabetical"], "base_policy"),
    ],
)
def test_a_value_that_no_pool_accepts_is_bad_input(words: list[str], field: str) -> None:
    error = CliRunner().invoke(app, ["simulate", "--jobs", "10", *words]).exception
    assert isinstance(error, BadInput)
    assert str(error).startswith(f"{field}: Input should be")


def test_help_shows_the_defaults() -> None:
    shown = CliRunner().invoke(app, ["simulate", "--help"]).stdout
    for default in ("skip", "0.25", "1800", "60", "history"):
        assert f"[default: {default}" in shown


@pytest.mark.parametrize(("learned", "order"), [(None, "fcfs"), ("berth", "berth over fcfs")])
def test_the_heading_names_the_policy_that_orders(learned: str | None, order: str) -> None:
    shape = {"jobs": 20, "nodes": 2, "gpus_per_node": 8, "load": 0.9}
    rules = {"policy": "fcfs", "runtime_source": "history", "mode": "skip", "preemption": "ranked"}
    assert heading({**shape, **rules, "learned": learned}) == (
        "20 jobs on 2 nodes x 8 GPUs, offered load 0.900;"
        f" {order} (history), skip, preemption ranked"
    )
