"""A job from a file, with flags over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.errors import BadInput
from cli.input.job_file import merged, parse_pools, read, variables


def test_both_spellings_of_a_job_become_one(tmp_path: Path) -> None:
    flat, nested = tmp_path / "flat.json", tmp_path / "nested.yaml"
    flat.write_text('{"name": "x", "pool": "demo", "gang": {"workers": 2}}')
    nested.write_text("pool: demo\nspec:\n  name: x\n  gang: {workers: 2}\n")
    assert read(flat) == read(nested)


def test_flags_go_before_the_file_and_what_was_not_given_is_not_sent() -> None:
    body: dict[str, object] = {"pool": "demo", "spec": {"name": "x", "gang": {"workers": 2}}}
    spec: dict[str, object] = {
        "name": None,
        "gpu_types": None,
        "gang": {"gpus_per_worker": 4, "workers": None},
    }
    assert merged(body, {"pool": "local", "tenant": None}, spec) == {
        "pool": "local",
        "spec": {"name": "x", "gang": {"workers": 2, "gpus_per_worker": 4}},
    }


def test_no_gang_is_sent_if_none_is_given() -> None:
    unsaid = {"gang": {"gpus_per_worker": None, "workers": None}}
    assert merged({}, {}, {"name": "x", **unsaid}) == {"spec": {"name": "x"}}


def test_a_variable_of_a_flag_replaces_that_of_the_file_and_no_other() -> None:
    body: dict[str, object] = {"spec": {"name": "x", "env": {"A": "file", "B": "file"}}}
    spec: dict[str, object] = {"env": variables(["A=flag", "C=1=2", "D="])}
    merged_spec = merged(body, {}, spec)["spec"]
    assert merged_spec == {"name": "x", "env": {"A": "flag", "B": "file", "C": "1=2", "D": ""}}


@pytest.mark.parametrize("pair", ["A", "=x", ""])
def test_a_variable_without_a_name_or_a_value_is_bad_input(pair: str) -> None:
    with pytest.raises(BadInput, match="NAME=VALUE is allowed"):
        variables([pair])


@pytest.mark.parametrize("name", ["job.json", "job.yaml"])
@pytest.mark.parametrize(
    "text", ["[1]", "{", '"x"', '{"spec": 1}', '{"name": "x", "name": "y"}', "a: 1\n---\na: 2", ""]
)
def test_a_file_that_holds_no_job_is_bad_input(tmp_path: Path, text: str, name: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadInput):
        read(path)


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        read(tmp_path / "none.json")


def test_a_value_that_is_given_twice_is_named(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("name: x\ngang:\n  workers: 1\n  workers: 2\n")
    with pytest.raises(BadInput, match="given twice: workers; one value is allowed"):
        read(path)


def test_pools_are_different_names_separated_by_commas() -> None:
    assert parse_pools(None) == []
    assert parse_pools("a,b") == ["a", "b"]


@pytest.mark.parametrize("text", ["", "a,", "a,a"])
def test_other_pools_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="separated by commas"):
        parse_pools(text)
