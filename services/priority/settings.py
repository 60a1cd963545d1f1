"""What priority is told at its start."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from shared.settings import Settings

SHIPPED = Path(__file__).parent / "models"


class PrioritySettings(Settings):
    """Policies come with the pool's settings, from the access ledger."""

    models: Path = Field(
        default=SHIPPED, description="Folder of learned policies: <name>.onnx and <name>.json"
    )
