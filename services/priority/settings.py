"""Settings of priority."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from shared.process.settings import Settings

SHIPPED = Path(__file__).parent / "models"


class PrioritySettings(Settings):
    """`BERTH_` variables of this service; policies are settings of the pool."""

    models: Path = Field(
        default=SHIPPED, description="Folder of learned policies: <name>.onnx and <name>.json"
    )
