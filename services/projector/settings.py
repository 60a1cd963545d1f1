"""Settings of the projector."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from shared.process.settings import Settings


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
    job_history_d: float = Field(
        0,
        ge=0,
        le=3650,
        description="Days for which histories of ended jobs are kept, and then until the end of "
        "their month; they leave into the archive; 0 = for ever",
    )
    records_d: float = Field(
        0,
        ge=0,
        le=3650,
        description="Days for which ended jobs, answers to commands, settled dead letters and "
        "entries of the audit are kept, and then until the end of their month; they leave into the "
        "archive; 0 = for ever",
    )
    job_logs: str = Field(
        "",
        description="Folder or address (s3://BUCKET/PREFIX?...) in which output of jobs is kept; "
        "it lasts as long as the topic `logs` if not given",
    )
    schema_name: str = Field("berth", pattern=r"^[a-z_]+$", description="Schema of the tables")

    @model_validator(mode="after")
    def _has_an_archive(self) -> Self:
        for name in ("job_history_d", "records_d"):
            if (days := getattr(self, name)) and not self.archive:
                raise ValueError(f"{name}: {days:g}; needs an archive, into which they leave")
        if self.records_d and self.job_history_d > self.records_d:
            raise ValueError(
                f"job_history_d: {self.job_history_d:g}; at most records_d, {self.records_d:g}: "
                "histories leave with their jobs"
            )
        return self
