"""Public classes of one name must not meet: a reader of a file sees one meaning per name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from infra.lint.source import Source

Imports: TypeAlias = Mapping[str, frozenset[str]]
"""Dotted names that each module imports, or packages that each package imports."""


def check(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a finding per pair of public classes of one name in packages that meet.

    Two packages meet where one imports the other. Modules of other packages meet where a third
    module imports both.
    """
    imports = {source.module: frozenset(_imported(source)) for source in sources}
    packages = _by_package(imports)
    for name, places in sorted(_public_classes(sources).items()):
        for (module, where), (other, _) in combinations(sorted(places), 2):
            if _packages_meet(module, other, packages) or _modules_meet(module, other, imports):
                yield f"{where}: public class {name} has the name of one in {other}"


def _public_classes(sources: Iterable[Source]) -> Mapping[str, list[tuple[str, str]]]:
    """Public top-level classes: name -> (module, path:line) of each definition."""
    places: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for source in sources:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append((source.module, f"{source.path}:{node.lineno}"))
    return places


def _imported(source: Source) -> Iterator[str]:
    """Yield the modules that a module imports, and the names from them."""
    for name, _ in source.imports:
        yield from (name, name.rpartition(".")[0])


def _by_package(imports: Imports) -> Imports:
    packages: dict[str, set[str]] = defaultdict(set)
    for module, names in imports.items():
        packages[package_of(module)].update(map(package_of, names))
    return {package: frozenset(names) for package, names in packages.items()}


def _packages_meet(module: str, other: str, imports: Imports) -> bool:
    one, two = package_of(module), package_of(other)
    return one == two or two in imports[one] or one in imports[two]


def _modules_meet(module: str, other: str, imports: Imports) -> bool:
    return (
        other in imports[module]
        or module in imports[other]
        or any(module in names and other in names for names in imports.values())
    )


def package_of(module: str) -> str:
    """The package that a reader takes in as one: `services.placement`, `cli`, `shared.bus`."""
    parts = module.split(".")
    deep = parts[0] in ("services", "shared", "simulator", "infra")
    return ".".join(parts[: 2 if deep else 1])
