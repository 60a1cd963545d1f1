"""The options of a chaos run as a command line and as stored settings."""

from __future__ import annotations

from benchmarks.parts.chaos.options import ChaosOptions, command_of, settings_of


def test_the_command_of_a_run_has_the_flags_that_differ_from_the_defaults() -> None:
    options = ChaosOptions(kills=100, only="kills", out="docs/results")
    assert command_of(options) == "berth bench chaos --kills 100 --only kills"


def test_stored_settings_have_no_files_and_no_list_of_parts() -> None:
    settings = settings_of(ChaosOptions(kills=100, only="kills", out="docs/results"))
    assert settings["kills"] == 100
    assert not settings.keys() & {"out", "simulation", "checks", "only"}
