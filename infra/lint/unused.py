"""A name that a module of the product defines is used by the product, and not by tests alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from infra.lint.source import Source

FOR_USERS = "for the programs of users"
SET_UP = "the set-up of tests"
OPEN = "fail-slow does not use it yet"
ORACLE = "what the product computes faster or otherwise is compared with it"
UNREAD = frozenset({"agent/berth_agent/messages.py", "shared/contracts/agents.py"})
"""The generated messages of the agent, and constants that the generator takes by their names."""
UNREAD_FOLDERS = (
    "client/berth_client/admin/",
    "shared/projections/migrations/",
    "shared/schedulers/systems/",
)
"""Modules for the programs of users, and those that Alembic and the registry of schedulers take by
their folder."""
KEPT = {
    ("agent/berth_agent/node/launch/unpack.py", "main"): "the text of a program of its own",
    ("agent/berth_agent/step/login_shell.py", "main"): "the text of a program of its own",
    ("benchmarks/parts/proxy/kills.py", "MUST_BE_ZERO"): "what a run is judged by",
    ("client/berth_client/launch_mpi.py", "main"): "the text of a program of its own",
    ("client/berth_client/launch_ray.py", "main"): "the text of a program of its own",
    ("infra/supervisor/stack.py", "PARTS"): SET_UP,
    ("infra/tracing/zipkin.py", "is_ready"): SET_UP,
    ("reporter/berth_reporter/__init__.py", "VERSION"): FOR_USERS,
    ("reporter/berth_reporter/collectives.py", "CollectiveTimes"): FOR_USERS,
    ("reporter/berth_reporter/lightning.py", "callback"): FOR_USERS,
    ("services/failslow/core/diagnosis/layout.py", "Layout"): ORACLE,
    ("services/failslow/core/diagnosis/suspects.py", "with_references"): OPEN,
    ("services/failslow/core/measures/relative_scores.py", "stragglers"): OPEN,
    ("services/failslow/core/readers/nccl_inspector.py", "awaited"): OPEN,
    ("services/priority/core/history/distributions.py", "gittins_s"): ORACLE,
    ("shared/projections/records.py", "KEPT"): "why no rows of these tables leave",
    ("shared/schedulers/host_shares/allot.py", "greedy"): ORACLE,
    ("shared/schedulers/host_shares/allot.py", "proportional"): ORACLE,
    ("simulator/failslow/policies.py", "nothing"): ORACLE,
}
"""Names that nothing of the product uses by themselves, and why they stay."""

Name: TypeAlias = tuple[str, str]
"""A module or a path, and a name in it."""


def check(product: Sequence[Source]) -> Iterator[str]:
    """Yield a finding per top-level name without a use, and per name of `KEPT` that has one."""
    used = {name for source in product for name in _used(source)}
    for source in product:
        if source.path in UNREAD or source.path.startswith(UNREAD_FOLDERS):
            continue
        for name, line in _defined(source):
            is_kept = (source.path, name) in KEPT
            if (source.module, name) not in used and not is_kept:
                yield f"{source.path}:{line}: nothing of the product uses {name}; remove it"
            elif (source.module, name) in used and is_kept:
                yield f"{source.path}:{line}: {name} is used; remove it from KEPT"


def _defined(source: Source) -> Iterator[tuple[str, int]]:
    """Yield each name of the top level; a decorator may pass what it decorates on, but for that
    of a dataclass."""
    for node in source.tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if all(_is_dataclass(decorator) for decorator in node.decorator_list):
                    yield node.name, node.lineno
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if not name.startswith("__"):
                    yield name, node.lineno


def _is_dataclass(decorator: ast.expr) -> bool:
    call = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(call, ast.Name) and call.id == "dataclass"


def _used(source: Source) -> Iterator[Name]:
    """Yield the names that a module reads, its own and those of modules that it imports."""
    modules: dict[str, str] = {}
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield node.module, alias.name
        elif isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
    for node in source.nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                yield source.module, name
            case ast.Attribute(value=value, attr=name):
                if module := modules.get(_dotted(value)):
                    yield module, name


def _dotted(node: ast.expr) -> str:
    """Return `a.b.c` of names and attributes, empty for other expressions."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{_dotted(value)}.{name}"
    return ""
