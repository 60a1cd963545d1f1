"""The learned policies that Berth ships, for a simulated priority."""

from __future__ import annotations

from pathlib import Path

from services.priority.core import learned
from services.priority.core.learned import BadModel, Model, Models
from shared.contracts.access import PoolConfigured

FOLDER = Path(learned.__file__).parents[1] / "models"


def load_models(pool: PoolConfigured) -> Models:
    """Those that the pool names. ValueError for one that does not exist or may not be believed."""
    shadows = [name.split(":", 1)[1] for name in pool.shadows if name.startswith("learned:")]
    asked = (*([pool.learned] if pool.learned else []), *shadows)
    return {name: load_model(name) for name in (resolve_name(each, pool) for each in asked)}


def resolve_name(name: str, pool: PoolConfigured) -> str:
    """A family's name stands for its network for such a pool."""
    return name if (FOLDER / f"{name}.onnx").is_file() else learned.variant(name, pool)


def load_model(name: str) -> Model:
    """Read and looked over; ValueError says what is wrong."""
    path = model_path(name)
    try:
        return learned.load(path.with_suffix(".json").read_bytes(), path.read_bytes())
    except (OSError, BadModel) as error:
        raise ValueError(f"learned: {name!r}: {error}") from None


def model_path(name: str) -> Path:
    """Of its network, the manifest beside it; ValueError where there is none."""
    path = FOLDER / f"{name}.onnx"
    if path.is_file():
        return path
    known = ", ".join(sorted(each.stem for each in FOLDER.glob("*.onnx"))) or "none"
    raise ValueError(f"learned: {name!r}, must be one of {known}, or what they begin with")
