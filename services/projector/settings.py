"""What the projector is told at its start."""

from __future__ import annotations

from pydantic import Field

from shared.settings import Settings


class ProjectorSettings(Settings):
    """One process projects all lanes."""

    postgres: str = Field(description="Address of the database; from a file where it has a secret")
    gather_ms: int = Field(
        50, ge=0, le=10_000, description="Pause between two transactions, so that they are bigger"
    )
    batch_records: int = Field(3000, ge=1, le=100_000, description="Most ledger records at once")
    schema_name: str = Field("berth", pattern=r"^[a-z_]+$", description="Where the tables are")
