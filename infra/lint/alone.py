"""Packages that are installed alone import the standard library and themselves.

The client imports its HTTP library, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from infra.lint.source import Source

PACKAGES = {
    "agent/berth_agent/": ("berth_agent",),
    "client/berth_client/": ("berth_client", "httpx2", "typing_extensions"),
    "reporter/berth_reporter/": ("berth_reporter",),
}
"""Folder -> the package and its libraries: nodes, laptops and the environments of users hold no
other of ours."""


def check(sources: Iterable[Source]) -> Iterator[str]:
    """Yield a finding per import of another package, also inside functions."""
    for source in sources:
        folder = "/".join((*source.path.split("/")[:2], ""))
        own = PACKAGES.get(folder, ())
        if not own:
            continue
        tops = {(name.split(".")[0], number) for name, number in source.imports}
        for top, number in sorted(tops):
            if top not in own and top not in sys.stdlib_module_names:
                yield f"{source.path}:{number}: {own[0]} is installed alone but imports {top}"
