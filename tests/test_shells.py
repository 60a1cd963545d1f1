"""The shells of all deciders have one shape; every service reads its settings at its start."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from infra.supervisor.stack import SERVICES
from shared.contracts.topics import LEDGERS

ROOT = Path(__file__).parents[1]
DECIDERS = sorted(service.name for service in SERVICES if service.decides)
MODULES = sorted({service.module for service in SERVICES})


def parsed(module: str, file: str) -> ast.Module:
    return ast.parse((ROOT / module.replace(".", "/") / file).read_text())


def calls(tree: ast.AST) -> dict[str, ast.Call]:
    """Return the last call of each function that is called by its name."""
    return {
        node.func.id: node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def run_of(service: str) -> ast.FunctionDef:
    (run,) = (
        node
        for node in parsed(f"services.{service}", "app.py").body
        if isinstance(node, ast.FunctionDef) and node.name == "run"
    )
    return run


def settings_of(service: str) -> str:
    """Return the name of the class of the settings that `run` takes."""
    (settings,) = run_of(service).args.args
    assert settings.arg == "settings"
    return ast.unparse(settings.annotation) if settings.annotation else ""


def test_every_ledger_has_a_decider() -> None:
    assert sorted(LEDGERS) == DECIDERS


@pytest.mark.parametrize("service", DECIDERS)
def test_a_decider_starts_with_telemetry_and_metrics_under_its_name(service: str) -> None:
    called = calls(run_of(service))
    assert ast.unparse(called["start_telemetry"]) == f"start_telemetry('{service}', settings)"
    assert ast.unparse(called["serve_metrics"]) == (
        f"serve_metrics(telemetry, settings, '{service}')"
    )


@pytest.mark.parametrize("service", DECIDERS)
def test_a_decider_runs_in_the_common_host_and_ends_with_its_spans_sent(service: str) -> None:
    last = run_of(service).body[-1]
    assert isinstance(last, ast.Try) and not last.handlers
    host = calls(last)["run_service"]
    assert {"settings", "on_accepted", "background"} <= {word.arg for word in host.keywords}
    assert ast.unparse(last.finalbody[-1]).endswith("spans.shutdown()")


@pytest.mark.parametrize("service", DECIDERS)
def test_a_decider_is_started_with_the_settings_of_its_shell(service: str) -> None:
    (start,) = (
        node
        for node in parsed(f"services.{service}", "__main__.py").body
        if isinstance(node, ast.If)
    )
    assert ast.unparse(start) == (
        f"if __name__ == '__main__':\n    run(read_settings({settings_of(service)}, os.environ))"
    )


@pytest.mark.parametrize("module", MODULES)
def test_every_service_reads_its_settings_from_the_environment(module: str) -> None:
    read = calls(parsed(module, "__main__.py"))["read_settings"]
    assert ast.unparse(read.args[1]) == "os.environ"
