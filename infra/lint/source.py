"""A parsed Python file."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """A module of the project: its path from the root, its text and its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree, walked once for all rules."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> tuple[tuple[str, int], ...]:
        """Dotted name of each import, with its line, also inside functions.

        `from a import b` is `a.b`; an import of the package itself by dots is left out.
        """
        names: list[tuple[str, int]] = []
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names += ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
            elif isinstance(node, ast.Import):
                names += ((alias.name, node.lineno) for alias in node.names)
        return tuple(names)

    @property
    def module(self) -> str:
        """Dotted name, as imported."""
        path = self.path.removeprefix("agent/").removeprefix("client/").removeprefix("reporter/")
        path = path.removesuffix(".py").removesuffix("/__init__")
        return path.replace("/", ".")

    @property
    def is_test(self) -> bool:
        return self.path.startswith("tests/")


def read(path: Path, root: Path) -> Source:
    """Read and parse a file below `root`. Raises SyntaxError."""
    return parse(str(path.relative_to(root)), path.read_text())


def parse(path: str, text: str) -> Source:
    """Parse the text of a file. Raises SyntaxError."""
    return Source(path, text, ast.parse(text, path))
