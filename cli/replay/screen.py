"""Progress display of a replay: a live table on a terminal, periodic lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.replay.progress import TERMINAL, ReplayProgress
from shared.bus.clock import now_ms

PLAIN_EVERY_S = 5.0
WAITING = ("unknown", "admitted", "deferred", "waiting", "stopping")


@dataclass(slots=True)
class Shown:
    """Figures of one moment of a replay."""

    sent: int
    total: int
    waiting: int
    running: int
    ended: Counter[str]
    placed_per_s: float
    p50_wait_s: float | None

    @property
    def done(self) -> int:
        return self.ended.total()


def shown(progress: ReplayProgress, sent: int, total: int) -> Shown:
    counts = progress.counts()
    unsent = total - sent
    return Shown(
        sent=sent,
        total=total,
        waiting=max(0, sum(counts.get(phase, 0) for phase in WAITING) - unsent),
        running=counts.get("placed", 0) + counts.get("running", 0),
        ended=Counter({phase: counts.get(phase, 0) for phase in TERMINAL}),
        placed_per_s=progress.placed_per_s(now_ms()),
        p50_wait_s=progress.p50_wait_s(),
    )


class Screen:
    """Shows figures; `update` may be called at any rate."""

    def __init__(self, progress: ReplayProgress, speed: float, live: Live | None) -> None:
        self._progress = progress
        self._speed = speed
        self._live = live
        self._printed_at_s = 0.0

    def update(self, now: Shown) -> None:
        if self._live is not None:
            self._live.update(self._drawn(now))
        elif time.monotonic() - self._printed_at_s >= PLAIN_EVERY_S:
            self._printed_at_s = time.monotonic()
            sys.stderr.write(_line(now) + "\n")
            sys.stderr.flush()

    def _drawn(self, now: Shown) -> Group:
        head = Text(f"replaying at {self._speed:g} cluster seconds per second", style="bold")
        decisions = "\n".join(self._progress.decisions)
        return Group(head, _bar(now), _counts(now), self._gpus(), Text(decisions, style="dim"))

    def _gpus(self) -> Table:
        table = Table(box=None, pad_edge=False, show_header=False)
        for name, (used, offered) in self._progress.utilisation().items():
            bar = ProgressBar(total=max(offered, 1), completed=used, width=32)
            table.add_row(name, bar, f"{used:.0f} of {offered:.0f} GPUs")
        return table


@contextmanager
def screen(progress: ReplayProgress, speed: float) -> Iterator[Screen]:
    """Open a display; plain lines on stderr if it is not a terminal."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield Screen(progress, speed, None)
        return
    with Live(console=console, refresh_per_second=4, transient=False) as live:
        yield Screen(progress, speed, live)


def _bar(now: Shown) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row(
        ProgressBar(total=max(now.total, 1), completed=now.done, width=48),
        f"{now.done} of {now.total} jobs ended, {now.sent} submitted",
    )
    return table


def _counts(now: Shown) -> Table:
    table = Table(box=None, pad_edge=False)
    wait = "-" if now.p50_wait_s is None else f"{now.p50_wait_s:.2f} s"
    cells = {
        "waiting": str(now.waiting),
        "running": str(now.running),
        **{phase: str(count) for phase, count in now.ended.items()},
        "placed/s": f"{now.placed_per_s:.1f}",
        "p50 wait": wait,
    }
    for name in cells:
        table.add_column(name, justify="right")
    table.add_row(*cells.values())
    return table


def _line(now: Shown) -> str:
    ended = ", ".join(f"{count} {phase}" for phase, count in now.ended.items() if count)
    return (
        f"{now.done}/{now.total} ended ({ended or 'none yet'}), {now.sent} submitted, "
        f"{now.waiting} waiting, {now.running} running, {now.placed_per_s:.1f} placed/s"
    )
