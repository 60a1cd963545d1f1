"""State changes of jobs as they are named in arguments."""

from __future__ import annotations

from cli.errors import BadInput

GROUPS = {
    "start": ("started",),
    "end": ("succeeded", "failed", "cancelled", "rejected"),
    "fail": ("failed", "rejected"),
    "preempt": ("preempted",),
}
"""Words that stand for state changes, as those of Slurm's `--mail-type` do."""
NAMES = ("started", "succeeded", "failed", "cancelled", "preempted", "rejected")


def parse_state_changes(text: str, option: str) -> list[str]:
    """Return the state changes of a list like `end,preempted`, each once. Raises BadInput."""
    chosen: set[str] = set()
    for word in text.lower().split(","):
        if word.strip() not in (*NAMES, *GROUPS):
            allowed = ", ".join((*GROUPS, *NAMES))
            raise BadInput(f"{option}: {word.strip()!r}; {allowed} are allowed")
        chosen.update(GROUPS.get(word.strip(), (word.strip(),)))
    return [name for name in NAMES if name in chosen]
