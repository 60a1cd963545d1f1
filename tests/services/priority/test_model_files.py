"""A folder of models: each is checked, and a bad one is kept as its error."""

from __future__ import annotations

from pathlib import Path

from services.priority.core.learned.model import BadModel, LearnedModel
from services.priority.model_files import read_models
from services.priority.settings import SHIPPED
from tests.services.priority.core.networks import manifest, network


def test_models_of_a_folder_by_name(tmp_path: Path) -> None:
    made = network()
    for name, text in (("good", manifest(made)), ("torn", manifest(made)[:-3])):
        (tmp_path / f"{name}.onnx").write_bytes(made)
        (tmp_path / f"{name}.json").write_bytes(text)
    (tmp_path / "alone.onnx").write_bytes(made)
    result = read_models(tmp_path)
    assert list(result) == ["alone", "good", "torn"]
    assert isinstance(result["good"], LearnedModel)
    assert str(result["alone"]).startswith("alone: No such file")
    assert str(result["torn"]).startswith("manifest: Invalid JSON")


def test_no_folder_is_no_models(tmp_path: Path) -> None:
    assert read_models(tmp_path / "none") == {}


def test_every_model_that_is_shipped_is_good() -> None:
    bad = {name: str(m) for name, m in read_models(SHIPPED).items() if isinstance(m, BadModel)}
    assert bad == {}
