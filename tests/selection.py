"""The runs that tests belong to, and the groups of files that one worker runs in order."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from typing import Any

import pytest

PROCESS_MARKS = frozenset({"process", "kafka", "stack", "browser", "compose"})
PROCESS_FIXTURES = frozenset({"postgres_dir"})
"""Fixtures that start a process; a test that uses one of them is marked by itself."""
SPAWNING = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"})

GROUPS = {
    "tests/e2e/agents/": "stack with agents",
    "tests/e2e/bad_input/": "shared stack",
    "tests/e2e/test_browser.py": "shared stack",
    "tests/e2e/test_client.py": "shared stack",
    "tests/e2e/test_observed.py": "shared stack",
    "tests/operations/test_tilt.py": "shared stack",
    "tests/infra/security/on_kafka/": "guarded broker",
    "tests/services/gateway/api/": "gateway",
    "tests/services/gateway/kafka/": "gateway",
    "tests/services/gateway/limits/": "gateway",
}
"""Beginnings of the paths of files that share a fixture which is dear to start -> their group."""

LONGEST = (
    "tests/operations/test_runbooks.py",
    "tests/operations/test_archive.py",
    "tests/operations/test_several_machines.py",
    "tests/e2e/test_local_pool.py",
    "tests/operations/test_upgrade.py",
    "tests/fencing/test_node_sabotage.py",
    "tests/fuzz/test_api.py",
)
"""Files that take minutes in `make test-parts`, which begins with them."""
APART = (
    "tests/operations/test_archive.py",
    "tests/e2e/test_local_pool.py",
    "tests/simulator/agreement/test_equality.py",
)
"""Files that take minutes and share no fixture: each of their tests is a group of its own."""

FIXTURES_OF_GROUPS = ("shared_stand", "stack")
"""Stacks that end with the last test of the group: they use the processor even without work."""


def group_of(node_id: str) -> str:
    """Return the group of a test; most files are a group of their own."""
    path, _, _ = node_id.partition("::")
    if path in APART:
        return node_id
    return next((group for start, group in GROUPS.items() if path.startswith(start)), path)


def starts_processes(item: pytest.Item) -> bool:
    marks = {mark.name for mark in item.iter_markers()}
    fixtures = getattr(item, "fixturenames", ())
    return bool(marks & PROCESS_MARKS or PROCESS_FIXTURES.intersection(fixtures))


def expense(item: pytest.Item) -> int:
    """Long tests, then stacks: a long group that starts last would keep one worker alone. Tests
    that compute for seconds run beside those that wait for processes."""
    if item.nodeid.partition("::")[0] in LONGEST:
        return 0
    marks = {mark.name for mark in item.iter_markers()}
    if marks & {"stack", "kafka"}:
        return 1 if "stack" in marks else 2
    return 3 if marks & {"process", "slow"} else 4


class ProcessGuard:
    """Refuses processes to a test that is not marked, so that `make test-fast` stays fast."""

    def __init__(self) -> None:
        self.refused_to = ""
        sys.addaudithook(self.audit)

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        if self.refused_to and event in SPAWNING:
            raise RuntimeError(
                f"{self.refused_to} starts a process: {event} {args[:2]}; "
                "mark it with pytest.mark.process"
            )


GUARD = ProcessGuard()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave the collected tests out of garbage collections, which would walk all of them again
    and again: a tenth of the collection, in each worker, and part of each test's time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if starts_processes(item):
            item.add_marker(pytest.mark.process)
    if hasattr(config, "workerinput"):
        sort_groups(items)


def sort_groups(items: list[pytest.Item]) -> None:
    """Files of one group stay together, and tests of one file in their order."""
    groups: dict[str, int] = {}
    for item in items:
        group = group_of(item.nodeid)
        groups[group] = min(groups.get(group, 9), expense(item))
    order = {group: number for number, group in enumerate(sorted(groups, key=groups.__getitem__))}
    items.sort(key=lambda item: order[group_of(item.nodeid)])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    GUARD.refused_to = "" if starts_processes(item) else item.nodeid
    try:
        return (yield)
    finally:
        GUARD.refused_to = ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    try:
        return (yield)
    finally:
        is_last = nextitem is None or group_of(nextitem.nodeid) != group_of(item.nodeid)
        if is_last and hasattr(item.config, "workerinput"):
            finish_fixtures_of_group(item)


def finish_fixtures_of_group(item: Any) -> None:
    for name in FIXTURES_OF_GROUPS:
        for definition in item.session._fixturemanager.getfixturedefs(name, item) or ():
            if definition.scope == "session":
                definition.finish(item._request)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from tests.scheduling import GroupScheduling

    config.option.loadscopereorder = False
    return GroupScheduling(config, log)
