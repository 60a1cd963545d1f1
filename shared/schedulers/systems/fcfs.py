"""First come, first served, on whichever type has most free GPUs."""

from __future__ import annotations

from typing import ClassVar

from shared.schedulers.hooks import Hooks


class Fcfs(Hooks):
    name: ClassVar[str] = "fcfs"
    source: ClassVar[str] = "the defaults of the seam"


class StrictFcfs(Hooks):
    """A job that does not fit keeps all those behind it waiting."""

    name: ClassVar[str] = "fcfs_strict"
    source: ClassVar[str] = "the defaults of the seam, nothing is passed over"
    passes_over: ClassVar[bool] = False
