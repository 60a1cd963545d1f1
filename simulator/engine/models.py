"""The learned policies shipped with Berth, for a simulated priority service."""

from __future__ import annotations

from pathlib import Path

from services.priority.core.learned import model as learned
from services.priority.core.learned.model import BadModel, LearnedModel, LearnedModels
from shared.contracts.pools import PoolConfigured

FOLDER = Path(learned.__file__).parents[2] / "models"


def load_models(pool: PoolConfigured) -> LearnedModels:
    """Load the models that the pool names. Raises ValueError for a missing or invalid one."""
    shadows = [name.split(":", 1)[1] for name in pool.shadows if name.startswith("learned:")]
    names = (*([pool.learned] if pool.learned else []), *shadows)
    return {name: load_model(name) for name in (resolve_name(name, pool) for name in names)}


def resolve_name(name: str, pool: PoolConfigured) -> str:
    """Return the network of a family for such a pool; another name stays as it is."""
    return name if (FOLDER / f"{name}.onnx").is_file() else learned.model_name(name, pool)


def load_model(name: str) -> LearnedModel:
    """Load and check a model; ValueError with the reason if it is invalid."""
    path = model_path(name)
    try:
        return learned.load_model(path.with_suffix(".json").read_bytes(), path.read_bytes())
    except (OSError, BadModel) as error:
        raise ValueError(f"learned: {name!r}: {error}") from None


def model_path(name: str) -> Path:
    """Return the path of a network, which has its manifest beside it. Raises ValueError."""
    path = FOLDER / f"{name}.onnx"
    if path.is_file():
        return path
    names = ", ".join(sorted(file.stem for file in FOLDER.glob("*.onnx"))) or "none"
    raise ValueError(f"learned: {name!r}, must be one of {names}, or what they begin with")
