"""Runs compiled functions as plain Python: what they compute does not depend on the compiler."""

from __future__ import annotations

from types import ModuleType

import pytest


def interpret(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    """Replace the compiled functions that these modules call by their Python code."""
    for module in modules:
        for name, function in vars(module).items():
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
