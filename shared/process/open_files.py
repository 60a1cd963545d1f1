"""The limit of open files of a process: each client of a server holds one."""

from __future__ import annotations

import resource


def raise_limit() -> int:
    """Raise the soft limit to the hard one; return it. Shells often begin with 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
