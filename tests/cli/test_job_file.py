"""A job from a file, with flags over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.errors import BadInput
from cli.job_file import merged, read


def test_both_spellings_of_a_job_become_one(tmp_path: Path) -> None:
    flat, nested = tmp_path / "flat.json", tmp_path / "nested.yaml"
    flat.write_text('{"name": "x", "pool": "demo", "gang": {"workers": 2}}')
    nested.write_text("pool: demo\nspec:\n  name: x\n  gang: {workers: 2}\n")
    assert read(flat) == read(nested)


def test_flags_go_before_the_file_and_what_was_not_given_is_not_sent() -> None:
    body = {"pool": "demo", "spec": {"name": "x", "gang": {"workers": 2}}}
    spec = {"name": None, "gpu_types": None, "gang": {"gpus_per_worker": 4, "workers": None}}
    assert merged(body, {"pool": "local", "tenant": None}, spec) == {
        "pool": "local",
        "spec": {"name": "x", "gang": {"workers": 2, "gpus_per_worker": 4}},
    }


def test_no_gang_is_sent_if_none_is_given() -> None:
    unsaid = {"gang": {"gpus_per_worker": None, "workers": None}}
    assert merged({}, {}, {"name": "x", **unsaid}) == {"spec": {"name": "x"}}


@pytest.mark.parametrize("text", ["[1]", "{", '"x"', '{"spec": 1}'])
def test_a_file_that_holds_no_job_is_bad_input(tmp_path: Path, text: str) -> None:
    path = tmp_path / "job.json"
    path.write_text(text)
    with pytest.raises(BadInput):
        read(path)


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        read(tmp_path / "none.json")
