"""`berth pools`: a change of one setting keeps the others, and a wrong one is explained."""

from __future__ import annotations

import json

import pytest

from cli.commands import pools as pool_commands
from cli.commands.pools import checked_settings, parse_assignments
from cli.errors import BadInput, NotFound, Refused
from shared.contracts.pools import ConfigurePool, PoolConfigured, PoolSettings
from shared.contracts.updates import UpdatePool
from tests.cli.settings_api import SettingsApi, replace_api

PRESENT = PoolConfigured(
    pool="gpu", partition=1, backends=("agent",), reserve_after_s=9.0, learned="berth"
).model_dump(mode="json", exclude={"release"})


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> SettingsApi:
    api = SettingsApi("pool", "gpu", PRESENT, ConfigurePool, time_scale=1.0)
    replace_api(monkeypatch, pool_commands, api)
    return api


def test_a_change_keeps_the_other_settings(
    api: SettingsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    pool_commands.set_("gpu", ["stop_after_s=keep", "learned=null"])
    [body] = api.bodies
    assert body == {"stop_after_s": "keep", "learned": None}
    assert api.settings == {**PRESENT, "stop_after_s": "keep", "learned": None}
    assert capsys.readouterr().out == "learned: berth -> -\nstop_after_s: 600 -> keep\n"


def test_a_pool_is_added_once_and_set_when_it_is_there(api: SettingsApi) -> None:
    with pytest.raises(Refused, match="the pool exists: gpu; `berth pools set` changes it"):
        pool_commands.add("gpu")
    with pytest.raises(NotFound, match="no such pool: cpu; `berth pools add cpu` creates it"):
        pool_commands.set_("cpu", ["rank_ms=5"])
    assert api.bodies == []
    pool_commands.add("cpu", ["backends=agent"])
    assert api.bodies == [{"pool": "cpu", "backends": ["agent"], "if_version": "absent"}]


def test_the_settings_of_a_pool_are_shown(
    api: SettingsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    pool_commands.show("gpu")
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (shown["stop_after_s"], shown["backends"], shown["spot_gpus"]) == ("600", "agent", "-")
    pool_commands.list_()
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["gpu", "agent"]


def test_values_are_json_or_words_and_lists_may_have_commas() -> None:
    words = ["rank_ms=5", "backends=agent,virtual", 'shadows=["sjf"]', "learned=null"]
    expected = {"rank_ms": 5, "backends": ["agent", "virtual"], "shadows": ["sjf"], "learned": None}
    assert parse_assignments(words) == expected


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("rank_ms", "no value: rank_ms; NAME=VALUE is allowed"),
        ("rank=5", "unknown setting: rank; one of allow_injection, assumed_restart_s, "),
        ("terminal=yes", "unknown setting: terminal; terminals is allowed, and "),
        ("pool=other", "unknown setting: pool; "),
        ("scheduler_shadow=muri", "^scheduler_shadow: muri decides neighbours, as no pool can"),
        ("scheduler=muri", "^scheduler: muri decides neighbours, as no pool can; `berth policies"),
        ("rank_ms=-1", "^rank_ms: -1; greater than or equal to 0 is allowed$"),
        ("stop_after_s=3", "^stop_after_s: 3; greater than or equal to 5 or 'keep' is allowed$"),
        (
            "backends=gpu",
            "^backends: 'gpu'; 'virtual', 'process', 'agent', 'slurm', 'kubernetes' or 'ray' is "
            "allowed$",
        ),
    ],
)
def test_a_wrong_setting_is_named_with_value_and_rule(word: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        checked_settings("gpu", parse_assignments([word]))


def test_a_scheduler_of_another_package_is_left_to_placement_with_a_remark(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert checked_settings("gpu", {"scheduler": "own"})["scheduler"] == "own"
    assert "scheduler own is not installed here" in capsys.readouterr().err
    assert checked_settings("gpu", {"scheduler": "gavel"})["scheduler"] == "gavel"
    assert capsys.readouterr().err == ""


def test_a_setting_is_given_once() -> None:
    with pytest.raises(BadInput, match="given twice: rank_ms"):
        parse_assignments(["rank_ms=1", "rank_ms=2"])
    with pytest.raises(BadInput, match="no setting"):
        pool_commands.set_("gpu", [])


@pytest.mark.parametrize("setting", sorted(PoolSettings.model_fields.keys() - {"pool"}))
def test_each_setting_has_a_key_a_field_of_rest_and_help(
    setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parse_assignments([f"{setting}=null"]) == {setting: None}
    assert setting in UpdatePool.model_fields and setting in ConfigurePool.model_fields
    pool_commands.settings(as_json=True)
    shown = {row["setting"]: row for row in json.loads(capsys.readouterr().out)}
    assert shown[setting]["meaning"] == PoolSettings.model_fields[setting].description


def test_a_pool_is_deleted_by_its_name(
    api: SettingsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    pool_commands.delete("gpu")
    assert api.deleted == ["/v1/pools/gpu"]
    assert capsys.readouterr().out == "gpu: deleted\n"
    with pytest.raises(NotFound, match="no such pool: cpu"):
        pool_commands.delete("cpu")
