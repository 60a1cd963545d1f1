"""The key of a fold's snapshots: all that a state depends on besides its ledger.

That is the code of every own module that the fold can reach, without comments and docstrings, the
versions of the interpreter and of libraries that states are made of, and what else the fold is
given. Another key means another fold, so a changed fold never reads a state of the one before.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import secrets
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

OWN = frozenset({"services", "shared", "tests"})
"""Packages that folds are followed into; tests have deciders of their own."""
LIBRARIES = ("msgspec", "numpy", "pydantic")
CODEC = "shared.contracts.codec"
"""Decodes every message; the types of a ledger are reached by their fold, so it is not followed."""
DECODING = (CODEC, "shared.contracts.upcast", "shared.ledger.reader", "shared.ledger.record")
KEY_LENGTH = 16
BEGAN_S = time.time()
"""When this process, or the one that it is a copy of, began to import its code."""


def key_of_state(state: type, parameters: str = "") -> str:
    """Return the key of the folds of a service: `evolve` is in the module beside the state's."""
    module = state.__module__
    evolve = f"{module.rpartition('.')[0]}.evolve"
    return fold_key((module, evolve) if file_of(evolve) else (module,), parameters)


@cache
def fold_key(roots: tuple[str, ...], parameters: str = "") -> str:
    """Return the key of the folds in these modules, 16 hexadecimal digits.

    Where a file has changed since this process began, its code may be the one before: the key is
    then one that no other process has.
    """
    modules = reachable((*roots, *DECODING))
    if any(file.stat().st_ctime >= BEGAN_S for file in modules.values()):
        return secrets.token_hex(KEY_LENGTH // 2)
    digest = hashlib.sha256(f"{sys.version_info[:2]} {parameters}".encode())
    for library in LIBRARIES:
        digest.update(f" {library} {version(library)}".encode())
    for name, file in sorted(modules.items()):
        digest.update(f" {name} ".encode() + code_digest(file))
    return digest.hexdigest()[:KEY_LENGTH]


def reachable(roots: Iterable[str]) -> dict[str, Path]:
    """Return the own modules that these import, directly or not, and themselves, with their files.

    Raises ModuleNotFoundError for a root that is no own module.
    """
    modules: dict[str, Path] = {}
    todo = list(roots)
    for root in todo:
        if file_of(root) is None:
            raise ModuleNotFoundError(f"no module of Berth: {root}")
    while todo:
        name = todo.pop()
        file = file_of(name)
        if file is None or name in modules:
            continue
        modules[name] = file
        todo += parents_of(name)
        if name != CODEC:
            todo += imports_of(file)
    return modules


def parents_of(name: str) -> list[str]:
    """Return the packages around a module: their `__init__` is run before it."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def file_of(name: str) -> Path | None:
    """Return the file of an own module or package; None if there is none of that name."""
    top, *rest = name.split(".")
    if top not in OWN:
        return None
    path = Path(importlib.import_module(top).__path__[0]).joinpath(*rest)
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


@cache
def imports_of(file: Path) -> tuple[str, ...]:
    """Return the names that a module imports from own packages, of modules and of what is in them.

    Raises ImportError for a relative import, which is not followed.
    """
    return tuple(name for name in imported(tree_of(file)) if name.split(".")[0] in OWN)


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.ImportFrom():
                raise ImportError("a fold must not import relatively")


@cache
def code_digest(file: Path) -> bytes:
    """Return the hash of a module's code, without comments and docstrings."""
    tree = tree_of(file)
    for node in ast.walk(tree):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                node.body = [part for part in node.body if not is_text(part)]
    return hashlib.sha256(ast.dump(tree).encode()).digest()


def is_text(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())
