"""Memory use of the stack, sampled per process while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from infra.supervisor import usage


@dataclass(slots=True)
class Peaks:
    """The peaks of all samples, in MiB."""

    data_dir: Path
    peak_rss_mib: float = 0.0
    peak_pss_mib: float = 0.0
    by_process_mib: dict[str, float] = field(default_factory=dict)

    def sample(self) -> None:
        by_process = usage.memory(self.data_dir)
        for name, used in by_process.items():
            self.by_process_mib[name] = max(self.by_process_mib.get(name, 0.0), used.pss_mib)
        whole = sum(by_process.values(), usage.Memory())
        self.peak_rss_mib = max(self.peak_rss_mib, whole.rss_mib)
        self.peak_pss_mib = max(self.peak_pss_mib, whole.pss_mib)
