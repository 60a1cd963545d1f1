"""`python -m infra.lint [PATH...]`: check words, names and their use, imports, lengths, places of
tests."""

from __future__ import annotations

import gc
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

from infra.lint import alone, classes, cores, length, mirror, unused, words
from infra.lint.source import Source, read

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "agent",
    "benchmarks",
    "cli",
    "client",
    "infra",
    "reporter",
    "services",
    "shared",
    "simulator",
    "training",
    "tests",
)


def findings(sources: Iterable[Source], files: Collection[str]) -> list[str]:
    """Return one `path:line: rule` per finding, sorted."""
    modules = list(sources)
    product = [source for source in modules if not source.is_test]
    return sorted(
        [
            *(finding for source in modules for finding in words.check(source)),
            *alone.check(product),
            *classes.check(product),
            *cores.check(product),
            *length.check(product),
            *mirror.check(product, files),
            *unused.check(product),
        ]
    )


def main(arguments: list[str]) -> int:
    """Check the whole project; print the findings below the given paths, return 1 if any."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.*"))]
    sources = [read(path, ROOT) for path in paths if path.suffix == ".py"]
    files = frozenset(str(path.relative_to(ROOT)) for path in paths)
    prefixes = tuple(argument.rstrip("/") for argument in arguments)
    lines = [line for line in findings(sources, files) if not prefixes or line.startswith(prefixes)]
    for line in lines:
        print(line)  # noqa: T201
    return 1 if lines else 0


if __name__ == "__main__":
    # All trees stay until the end: a collection would walk them and free nothing.
    gc.disable()
    sys.exit(main(sys.argv[1:]))
