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
        found = {
            each.name: _with_children(each.pid)
            for each in control.processes(self.data_dir)
            if each.pid
        }
        # Its children are all of the above.
        found["supervisor"] = _of(control.supervisor_pid(self.data_dir))
        for name, (_, pss) in found.items():
            self.by_process_mib[name] = max(self.by_process_mib.get(name, 0.0), pss)
        self.peak_rss_mib = max(self.peak_rss_mib, sum(rss for rss, _ in found.values()))
        self.peak_pss_mib = max(self.peak_pss_mib, sum(pss for _, pss in found.values()))


def _with_children(pid: int) -> tuple[float, float]:
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return 0.0, 0.0
    found = [_of(each) for each in (pid, *(child.pid for child in children))]
    return sum(rss for rss, _ in found), sum(pss for _, pss in found)


def _of(pid: int) -> tuple[float, float]:
    """0 for a process that ended meanwhile."""
    try:
        process = psutil.Process(pid)
        rss = process.memory_info().rss / MIB
    except psutil.Error:
        return 0.0, 0.0
    try:
        return rss, process.memory_full_info().pss / MIB
    except (psutil.Error, AttributeError):
        return rss, rss
