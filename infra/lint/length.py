"""A production file has at most 300 lines, so that it can be read at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from infra.lint.source import Source

MOST_LINES = 300
EXEMPT = {
    "agent/berth_agent/messages.py": "generated",
    "shared/contracts/agents.py": "one protocol, which is generated from in order",
    "shared/contracts/pools.py": "the settings of a pool, in one model",
    "simulator/kernel/state.py": "rows and rules of the kernel, in one memory layout",
}
"""Files that are longer, and why."""
MIGRATIONS = "shared/projections/migrations/versions/"
"""A migration that was released is not changed any more."""


def check(sources: Iterable[Source]) -> Iterator[str]:
    """Yield a finding per production file that is too long, and per exemption without need."""
    for source in sources:
        lines = len(source.text.splitlines())
        if source.path in EXEMPT:
            if lines <= MOST_LINES:
                yield f"{source.path}:1: has {lines} lines; remove it from EXEMPT"
        elif lines > MOST_LINES and not source.path.startswith(MIGRATIONS):
            yield f"{source.path}:{MOST_LINES + 1}: {lines} lines; the bound is {MOST_LINES}"
