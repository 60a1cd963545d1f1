"""Settings of the projector."""

from __future__ import annotations

from pydantic import Field

from shared.settings import Settings


class ProjectorSettings(Settings):
    """`BERTH_` variables of this service."""

    postgres: str = Field(
        description="Address of the database; from a file if it contains a secret"
    )
    gather_ms: int = Field(
        50,
        ge=0,
        le=10_000,
        description="Pause between two transactions, in ms, so that they are larger",
    )
    batch_records: int = Field(
        3000, ge=1, le=100_000, description="Maximum ledger records per transaction"
    )
    schema_name: str = Field("berth", pattern=r"^[a-z_]+$", description="Schema of the tables")
