"""Packages that are installed alone import the standard library and themselves, nothing else."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator

from infra.lint.source import Source

PACKAGES = {"agent/berth_agent/": "berth_agent", "reporter/berth_reporter/": "berth_reporter"}
"""Folder -> package: nodes and the environments of users hold no library of ours."""


def check(sources: Iterable[Source]) -> Iterator[str]:
    """Yield a finding per import of another package, also inside functions."""
    for source in sources:
        own = next((name for start, name in PACKAGES.items() if source.path.startswith(start)), "")
        if not own:
            continue
        for top, number in _imported(source):
            if top != own and top not in sys.stdlib_module_names:
                yield f"{source.path}:{number}: {own} is installed alone but imports {top}"


def _imported(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the first part of each imported name, with its line."""
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").split(".")[0], node.lineno
        elif isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
