"""Schedulers by name: each module of `systems`, and packages that name an entry point."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import entry_points

from shared.schedulers import systems
from shared.schedulers.hooks import Hooks

GROUP = "berth.schedulers"
"""Entry points of other packages: each is a class of a scheduler."""


@lru_cache(maxsize=1)
def scheduler_classes() -> dict[str, type[Hooks]]:
    """Return the classes by name, ordered by it.

    Raises ValueError if two have one name.
    """
    by_name: dict[str, type[Hooks]] = {}
    for name, scheduler in sorted(_named(), key=lambda pair: pair[0]):
        if name in by_name:
            raise ValueError(f"scheduler {name}: is defined twice")
        by_name[name] = scheduler
    return by_name


def scheduler_of(name: str) -> Hooks:
    """Return a new scheduler. Raises ValueError if there is none of that name."""
    classes = scheduler_classes()
    if name not in classes:
        raise ValueError(f"scheduler: {name}, must be one of {', '.join(classes)}")
    return classes[name]()


def _named() -> Iterator[tuple[str, type[Hooks]]]:
    for module_info in pkgutil.iter_modules(systems.__path__, f"{systems.__name__}."):
        module = importlib.import_module(module_info.name)
        for _, member in inspect.getmembers(module, inspect.isclass):
            if not issubclass(member, Hooks) or member.__module__ != module.__name__:
                continue
            if "name" in vars(member):
                yield member.name, member
    for entry in entry_points(group=GROUP):
        loaded = entry.load()
        yield loaded.name, loaded
