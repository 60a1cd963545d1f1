"""Reads the learned policies of a folder; a bad one is kept as its error."""

from __future__ import annotations

import logging
from pathlib import Path

from services.priority.core.learned.model import BadModel, LearnedModel, load_model

log = logging.getLogger(__name__)


def read_models(folder: Path) -> dict[str, LearnedModel | BadModel]:
    """Return the models by name; without any, the base policies rank."""
    models: dict[str, LearnedModel | BadModel] = {}
    for path in sorted(folder.glob("*.onnx")):
        models[path.stem] = model = read_model(path)
        if isinstance(model, BadModel):
            log.warning("bad model", extra={"model": path.stem, "reason": str(model)})
    return models


def read_model(path: Path) -> LearnedModel | BadModel:
    try:
        return load_model(path.with_suffix(".json").read_bytes(), path.read_bytes())
    except OSError as error:
        return BadModel(f"{path.stem}: {error.strerror}, must be a readable file and its manifest")
    except BadModel as error:
        return error
