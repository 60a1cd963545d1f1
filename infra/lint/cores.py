"""The simulator and the training run the cores of services, never their shells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from infra.lint.source import Source

FOLDERS = ("simulator/", "training/")
PURE_PARTS = (["core"], ["models"])
"""Parts of a service that these folders may import: what decides, and the models that it ships."""


def check(sources: Iterable[Source]) -> Iterator[str]:
    """Yield a finding per import of a service that is not of its core or models."""
    for source in sources:
        if source.path.startswith(FOLDERS):
            for name, number in source.imports:
                if name.startswith("services.") and name.split(".")[2:3] not in PURE_PARTS:
                    yield f"{source.path}:{number}: imports the shell of a service: {name}"
