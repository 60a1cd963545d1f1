"""An import of a shell by the simulator or the training is a finding, one of a core is none."""

from __future__ import annotations

import pytest

from infra.lint.cores import check
from infra.lint.source import parse


@pytest.mark.parametrize(
    ("text", "imported"),
    [
        (
            "from services.gateway.settings import GatewaySettings",
            "services.gateway.settings.GatewaySettings",
        ),
        ("import services.placement.app", "services.placement.app"),
        ("from services.gateway import app", "services.gateway.app"),
        ("from services.gateway.core_of_old import f", "services.gateway.core_of_old.f"),
        ("from services import gateway", "services.gateway"),
        ("def f():\n    import services.executor.virtual.twin", "services.executor.virtual.twin"),
    ],
)
@pytest.mark.parametrize("path", ["simulator/engine/world.py", "training/rank.py"])
def test_a_shell_is_a_finding(path: str, text: str, imported: str) -> None:
    [finding] = check([parse(path, text)])
    assert finding.startswith(f"{path}:")
    assert finding.endswith(f"imports the shell of a service: {imported}")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("simulator/engine/world.py", "from services.placement.core.pool.state import Pool"),
        ("simulator/engine/world.py", "from services.placement.core import decide"),
        ("simulator/engine/world.py", "import services.priority.models"),
        ("training/rank.py", "from shared.process.settings import Settings"),
        ("cli/stack/serve.py", "from services.gateway.settings import GatewaySettings"),
    ],
)
def test_a_core_and_another_importer_are_none(path: str, text: str) -> None:
    assert list(check([parse(path, text)])) == []
