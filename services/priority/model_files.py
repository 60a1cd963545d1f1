"""The learned policies of a folder, each looked over; a bad one is kept with what is wrong."""

from __future__ import annotations

import logging
from pathlib import Path

from services.priority.core.learned import BadModel, LearnedModel, load_model

log = logging.getLogger(__name__)


def read_models(folder: Path) -> dict[str, LearnedModel | BadModel]:
    """By name. A service without models is as good as its base policies; it starts all the same."""
    found: dict[str, LearnedModel | BadModel] = {}
    for path in sorted(folder.glob("*.onnx")):
        found[path.stem] = model = read_model(path)
        if isinstance(model, BadModel):
            log.warning("model is bad", extra={"model": path.stem, "reason": str(model)})
    return found


def read_model(path: Path) -> LearnedModel | BadModel:
    try:
        return load_model(path.with_suffix(".json").read_bytes(), path.read_bytes())
    except OSError as error:
        return BadModel(f"{path.stem}: {error.strerror}, must be a readable file and its manifest")
    except BadModel as error:
        return error
