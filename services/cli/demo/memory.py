"""How much memory the stack takes: sampled while it runs, by process of the stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import psutil

from infra import control

MIB = 2**20


@dataclass(slots=True)
class Memory:
    """Peaks so far. `pss` shares out what several processes map, as Postgres's do."""

    data_dir: Path
    peak_rss_mib: float = 0.0
    peak_pss_mib: float = 0.0
    by_process_mib: dict[str, float] = field(default_factory=dict)

    def sample(self) -> None:
        rss_mib = pss_mib = 0.0
        for each in control.processes(self.data_dir):
            rss, pss = _with_children(each.pid) if each.pid else (0.0, 0.0)
            rss_mib, pss_mib = rss_mib + rss, pss_mib + pss
            self.by_process_mib[each.name] = max(self.by_process_mib.get(each.name, 0.0), pss)
        self.peak_rss_mib = max(self.peak_rss_mib, rss_mib)
        self.peak_pss_mib = max(self.peak_pss_mib, pss_mib)


def _with_children(pid: int) -> tuple[float, float]:
    try:
        process = psutil.Process(pid)
        found = [_of(each) for each in (process, *process.children(recursive=True))]
    except psutil.Error:
        return 0.0, 0.0
    return sum(rss for rss, _ in found), sum(pss for _, pss in found)


def _of(process: psutil.Process) -> tuple[float, float]:
    """0 for a process that ended meanwhile."""
    try:
        rss = process.memory_info().rss / MIB
    except psutil.Error:
        return 0.0, 0.0
    try:
        return rss, process.memory_full_info().pss / MIB
    except (psutil.Error, AttributeError):
        return rss, rss
