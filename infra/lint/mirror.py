"""Tests mirror the tree: those of `<path>/<module>.py` lie in `tests/<path>/test_<module>.py`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath

from infra.lint.source import Source

THEMES = (
    "tests/chaos",
    "tests/compose",
    "tests/contracts",
    "tests/docs",
    "tests/e2e",
    "tests/fencing",
    "tests/fuzz",
    "tests/infra/security/on_kafka",
    "tests/operations",
    "tests/replay",
    "tests/services/executor/conformance",
    "tests/services/gateway/api",
    "tests/shared/bus/protocol",
    "tests/services/throttle/attacks",
    "tests/services/throttle/real_engine",
    "tests/simulator/agreement",
)
"""Folders of tests that cross modules, and so name a subject instead of a module."""
PURE_FOLDERS = frozenset(
    {
        "cli/text",
        "services/gateway/routes",
        "services/throttle/relay",
        "shared/contracts",
        "shared/ledger",
        "shared/performance",
        "shared/pipeline",
        "shared/projections",
        "shared/schedulers",
        "shared/verify",
        "simulator/llm/adapters",
        "simulator/failslow",
        "simulator/metrics",
        "simulator/pipeline",
    }
)
PURE_MODULES = frozenset(
    {
        "cli/stack/addresses.py",
        "cli/stack/pool_defaults.py",
        "services/gateway/requests/body.py",
        "services/gateway/streams/hub.py",
        "services/gateway/kafka/inbound.py",
        "services/gateway/streams/log_lines.py",
        "services/gateway/reads/paging.py",
        "services/gateway/responses/problem.py",
        "services/gateway/streams/sse.py",
        "services/placement/proposals/messages.py",
        "services/placement/solver/messages.py",
        "services/publisher/dead_letters.py",
        "services/publisher/positions.py",
        "services/throttle/proxy/options.py",
        "services/throttle/proxy/rate_headers.py",
        "services/throttle/proxy/settlement.py",
        "services/throttle/upstreams/balance.py",
        "services/throttle/upstreams/breaker.py",
        "services/throttle/upstreams/metrics_text.py",
        "services/throttle/upstreams/request_errors.py",
        "shared/bus/archive/chain.py",
        "shared/bus/archive/cut.py",
        "shared/bus/archive/segment.py",
        "shared/bus/archive/trim.py",
        "shared/bus/archive/walk.py",
        "shared/telemetry/event_attributes.py",
        "simulator/llm/batching.py",
    }
)
"""Modules beside those of `PURE_FOLDERS` and of the cores that a test can call as they are, or
with a log in memory."""
HANDLERS = "its functions are handlers: tests/services/gateway/api"
EXEMPT = {
    "services/gateway/routes/audit.py": HANDLERS,
    "services/gateway/routes/cancellations.py": HANDLERS,
    "services/gateway/routes/dead_letters.py": HANDLERS,
    "services/gateway/routes/faults.py": HANDLERS,
    "services/gateway/routes/llm.py": HANDLERS,
    "services/gateway/routes/tenants.py": HANDLERS,
}
"""Pure modules without a test of their own, and why."""
PACKAGE_ROOTS = {
    "agent": "agent/berth_agent",
    "client": "client/berth_client",
    "reporter": "reporter/berth_reporter",
}
"""Folders of tests -> the packages that they mirror, where the names differ."""
PROGRAM = "service"
"""`test_service.py` starts the `__main__.py` of its folder as a process."""


def check(sources: Iterable[Source], files: Collection[str]) -> Iterator[str]:
    """Yield a finding per test that names no module and per pure module without a test.

    `files` are the paths of all files of the project, those of Python and others.
    """
    stems = _stems_by_folder(files)
    for path in files:
        if is_test(path) and not is_theme(path) and not _names_a_module(path, stems):
            yield f"{path}:1: test of no module; name it test_<module>.py, or see THEMES"
    for source in sources:
        if is_pure(source.path) and has_functions(source):
            yield from _missing_test(source.path, test_of(source.path) in files)


def _missing_test(path: str, is_tested: bool) -> Iterator[str]:
    if is_tested and path in EXEMPT:
        yield f"{path}:1: has a test; remove it from EXEMPT"
    elif not is_tested and path not in EXEMPT:
        yield f"{path}:1: pure module without {test_of(path)}"


def is_test(path: str) -> bool:
    name = PurePosixPath(path).name
    return path.startswith("tests/") and name.startswith("test_") and name.endswith(".py")


def is_theme(path: str) -> bool:
    """Return whether the test may name a subject: those in `tests/` itself are of the whole
    project.
    """
    folder = PurePosixPath(path).parent
    return str(folder) == "tests" or any(folder.is_relative_to(theme) for theme in THEMES)


def is_pure(path: str) -> bool:
    """Return whether a test of the module needs no process, network or clock."""
    folder, parts = str(PurePosixPath(path).parent), PurePosixPath(path).parts
    in_core = parts[0] == "services" and "core" in parts[2:]
    return in_core or folder in PURE_FOLDERS or path in PURE_MODULES


def has_functions(source: Source) -> bool:
    """Return whether there is something to call; declarations alone are tested where they are
    used.
    """
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in source.nodes)


def test_of(path: str) -> str:
    module = PurePosixPath(path)
    folder = str(module.parent)
    for root, package in PACKAGE_ROOTS.items():
        if module.is_relative_to(package):
            folder = root + folder.removeprefix(package)
    return f"tests/{folder}/test_{module.name}"


def _mirrored(folder: PurePosixPath) -> str:
    """Return the folder of the modules whose tests lie in `tests/<folder>`."""
    for root, package in PACKAGE_ROOTS.items():
        if folder.is_relative_to(root):
            return package + str(folder).removeprefix(root)
    return str(folder)


def _stems_by_folder(files: Iterable[str]) -> dict[str, set[str]]:
    stems: dict[str, set[str]] = {}
    for file in map(PurePosixPath, files):
        stem = PROGRAM if file.stem == "__main__" else file.stem
        stems.setdefault(str(file.parent), set()).add(stem)
    return stems


def _names_a_module(test: str, stems: dict[str, set[str]]) -> bool:
    """Return whether the name is that of a file in the mirrored folder, or begins with it.

    `test_decide_properties.py` is a second file of tests of `decide.py`.
    """
    path = PurePosixPath(test).relative_to("tests")
    subject = path.stem.removeprefix("test_")
    modules = stems.get(_mirrored(path.parent), set())
    return any(subject == stem or subject.startswith(f"{stem}_") for stem in modules)
