"""The whole control plane of a stack is killed and stays away: services, broker and Postgres."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from infra.supervisor import control


@contextmanager
def control_plane_away(data_dir: Path) -> Iterator[None]:
    """Kill every process of the stack; its supervisor starts them again after the block."""
    processes = control.processes(data_dir)
    supervisor = int((data_dir / "supervisord.pid").read_text())
    os.kill(supervisor, signal.SIGSTOP)
    try:
        for process in processes:
            # Postgres at once and without a checkpoint, as by a crash that takes its children.
            number = signal.SIGQUIT if process.name == "postgres" else signal.SIGKILL
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(supervisor, signal.SIGCONT)
