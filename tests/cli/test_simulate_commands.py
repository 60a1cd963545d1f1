"""The flags of `berth simulate` have the defaults of the simulation's options."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cli.main import app
from shared.contracts.access import default_of
from simulator.engine.options import SimulationOptions

SETTINGS = {
    "runtime": "runtime",
    "mode": "queue_mode",
    "preemption": "preemption",
    "residency": "min_residency_s",
    "large_gang_share": "large_gang_share",
    "defragment_after": "defragment_after_s",
}
OPTIONS = SETTINGS | {
    "policy": "base_policy",
    "learned": "learned",
    "solver": "solver",
    "nodes": "nodes",
    "gpus_per_node": "gpus_per_node",
    "load": "load",
    "last_share": "last_share",
    "time_scale": "time_scale",
    "restart": "restart_s",
    "checkpoint": "checkpoint_s",
    "margin": "preempt_margin",
    "walltime": "walltime",
    "failures": "failures",
    "seed": "seed",
}


@pytest.fixture(scope="module")
def defaults() -> dict[str, Any]:
    command: Any = get_command(app)
    context = command.commands["simulate"].make_context("simulate", [])
    values: dict[str, Any] = context.params
    return values


@pytest.mark.parametrize(("flag", "option"), sorted(OPTIONS.items()))
def test_a_flag_has_the_default_of_its_option(
    defaults: dict[str, Any], flag: str, option: str
) -> None:
    assert defaults[flag] == getattr(SimulationOptions(), option)


@pytest.mark.parametrize(("flag", "setting"), sorted(SETTINGS.items()))
def test_a_flag_of_a_pool_setting_has_the_default_of_pools(
    defaults: dict[str, Any], flag: str, setting: str
) -> None:
    assert defaults[flag] == default_of(setting)


def test_help_shows_the_defaults() -> None:
    shown = CliRunner().invoke(app, ["simulate", "--help"]).stdout
    for default in ("skip", "0.25", "1800", "60", "history"):
        assert f"[default: {default}" in shown
