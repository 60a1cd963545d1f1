"""The commands of the trainings: without names they train everything."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from training import __main__ as shipped
from training import left_out
from training.folds import FOLDS
from training.variants import FIRST, SHIPPED, Variant


def test_without_names_every_variant_is_trained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names: list[str] = []

    def write(variant: Variant, runs: object, folder: Path) -> None:
        names.append(variant.name)

    monkeypatch.setattr(shipped, "write", write)
    monkeypatch.setattr(sys, "argv", ["training", "--seeds", "0", "--processes", "2"])
    shipped.main()
    assert names == [variant.name for variant in (FIRST, *SHIPPED)]


def test_without_folds_each_is_left_out_and_ppo_takes_the_first_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained: list[tuple[str, str, int]] = []

    def train(course: str, fold: str, method: str, seed: int) -> tuple[str, str, int]:
        return fold, method, seed

    monkeypatch.setattr(left_out, "open_course", str)
    monkeypatch.setattr(left_out, "train", train)
    monkeypatch.setattr(left_out, "add", trained.append)
    monkeypatch.setattr(sys, "argv", ["left_out", "--seeds", "3", "4"])
    left_out.main()
    own = [("evolution", 3), ("evolution", 4), ("ppo", 3)]
    assert trained == [(fold, *place) for fold in FOLDS for place in own]


@pytest.mark.parametrize("arguments", [["venus"], ["--methods", "adam"]])
def test_an_unknown_fold_or_method_is_an_error(
    monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["left_out", *arguments])
    with pytest.raises(SystemExit):
        left_out.main()
    assert "invalid choice" in capsys.readouterr().err
