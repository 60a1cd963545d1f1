"""Settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth_agent.node.config import Config, ConfigError, load, make


def test_flags_replace_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('gpus = 4\ncpus = 8\nrack = "r1"\n[users]\nvision = "alice"\n')
    config = load(file, {"gpus": 2, "rack": None})
    assert (config.gpus, config.cpus, config.rack) == (2, 8.0, "r1")
    assert config.users == {"vision": "alice"}


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"gpu": 1}, "gpu: unknown setting"),
        ({"gpus": "4"}, "gpus: '4'; int is allowed"),
        ({"gpus": True}, "gpus: True"),
        ({"cpus": -1}, "cpus: -1"),
        ({"cgroups": 1}, "cgroups: 1; bool is allowed"),
        ({"labels": {"a": 1}}, "labels"),
        ({"unusable_gpus": ["0"]}, "unusable_gpus"),
        ({"uid_first": -1}, "uid_first: -1; 0 or more is allowed"),
        ({"umask": "8"}, "umask: '8'; an octal number"),
    ],
)
def test_a_wrong_setting_is_named(values: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        make(values)


def test_a_setting_of_a_newer_agent_is_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "config.toml"
    file.write_text("gpus = 4\nfuture = true\n")
    assert load(file, {}) == Config(gpus=4)
    assert [record.getMessage() for record in caplog.records] == [
        f"{file}: future: unknown setting, ignored"
    ]


def test_a_relative_folder_begins_where_the_command_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = make({"state": "n1/state", "run": "/run/x/../n1", "prolog": "check", "work": ""})
    assert config.state == str(tmp_path / "n1" / "state") and config.run == "/run/n1"
    assert config.prolog == str(tmp_path / "check") and config.epilog == ""
    assert config.work_folder == str(tmp_path / "n1" / "state" / "work")


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("gpus = ")
    with pytest.raises(ConfigError, match=str(file)):
        load(file, {})
    with pytest.raises(OSError, match="missing"):
        load(tmp_path / "missing.toml", {})


def test_the_defaults_need_no_file() -> None:
    assert make({}) == Config()
    assert Config().work_folder == "/var/lib/berth-agent/work"


@pytest.mark.parametrize(
    "mounts", [{"data": "ro"}, {"/": "ro"}, {"/data:x": "ro"}, {"/data": "rwx"}]
)
def test_a_mount_names_a_folder_and_how_it_is_seen(mounts: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="image_mounts"):
        make({"image_mounts": mounts})
    assert make({"image_mounts": {"/data": "ro"}}).image_mounts == {"/data": "ro"}
