"""Lists in documents are complete: they name what the code has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from infra.supervisor.stack import SERVICES
from shared.contracts.releases import LATE_BACKENDS, LATE_SETTINGS, RELEASE_SETTINGS
from shared.contracts.topics import INPUTS

ROOT = Path(__file__).parents[2]
ACCESS = ROOT / "services" / "access"
PAGES_OF_SERVICES = sorted((ROOT / "services").glob("*/README.md"))


def reasons_of(source: str) -> set[str]:
    """Return the reasons of all denials that the source makes."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    denials = (call for call in calls if getattr(call.func, "id", "") == "Denial")
    return {ast.literal_eval(denial.args[1]) for denial in denials}


def codes_of_table(text: str, head: str) -> set[str]:
    """Return the code words in the first column of the table that begins with `head`."""
    rows = text.partition(head)[2].partition("\n\n")[0].splitlines()
    return {code for row in rows for code in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_the_page_of_access_has_every_reason_of_a_refusal() -> None:
    files = (ACCESS / "core").glob("*.py")
    made = {reason for file in files for reason in reasons_of(file.read_text())}
    text = (ACCESS / "README.md").read_text()
    assert made == codes_of_table(text, "| reason of a refusal | condition |\n")


def test_the_readme_names_every_benchmark() -> None:
    files = (ROOT / "benchmarks").glob("*.py")
    names = {file.stem for file in files if file.stem != "__init__"}
    row = re.search(
        r"^\| `benchmarks` \| `berth bench (.*?) with", (ROOT / "README.md").read_text(), re.M
    )
    assert row is not None
    assert names == set(re.findall(r"\w+", row[1]))


def test_the_list_of_decisions_has_every_record_in_order() -> None:
    folder = ROOT / "docs" / "decisions"
    rows = re.findall(
        r"^\| (?:\[)?(\d{4})(?:\]\((.*?)\))? \|", (folder / "README.md").read_text(), re.M
    )
    assert [number for number, _ in rows] == [f"{number:04}" for number in range(1, len(rows) + 1)]
    files = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert [name for _, name in rows if name] == files


def test_the_list_of_results_has_every_page_and_figure() -> None:
    folder = ROOT / "docs" / "results"
    text = (folder / "README.md").read_text()
    pages = {path.stem for path in folder.glob("*.md")} - {"README"}
    assert set(re.findall(r"\((\w+)\.md\)", text)) == pages
    figures = {path.stem for path in folder.glob("*.json")} - pages
    assert set(re.findall(r"`(\w+)\.json`", text)) == figures


def test_the_architecture_names_every_service_and_its_rooms() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    modules = (ROOT / "services").glob("**/*.py")
    folders = {file.parent.relative_to(ROOT / "services") for file in modules}
    names = {part for folder in folders for part in folder.parts}
    assert {name for name in names if not re.search(rf"\b{name}/", page)} == set()


def drawn_in_the_readme() -> set[tuple[str, str]]:
    """Return topic and reader of each labelled arrow of the picture: `a -- topic --> b & c`."""
    picture = (ROOT / "README.md").read_text().partition("```mermaid\n")[2].partition("```")[0]
    arrows = re.findall(r"--? ([\w. ]+) -->? (\w+(?: & \w+)*)", picture)
    return {(topic, reader) for topic, readers in arrows for reader in readers.split(" & ")}


def test_the_readme_draws_every_input_of_every_decider() -> None:
    drawn = drawn_in_the_readme()
    inputs = {(topic, reader) for reader, topics in INPUTS.items() for topic in topics}
    ledgered = {topic for topic, _ in inputs}
    deciders = {(topic, reader) for topic, reader in drawn if topic in ledgered}
    assert deciders - {("placement", "executor")} == inputs


def test_the_readme_draws_every_service() -> None:
    picture = (ROOT / "README.md").read_text().partition("```mermaid\n")[2].partition("```")[0]
    names = {service.module.removeprefix("services.") for service in SERVICES}
    assert names <= set(re.findall(r"\w+", picture))


def test_the_page_of_upgrades_names_every_setting_that_waits() -> None:
    page = (ROOT / "docs" / "operations" / "upgrade.md").read_text()
    row = page.partition("| a pool keeps it as it is |")[2].partition("(")[0]
    settings = {name for names in RELEASE_SETTINGS.values() for name in names}
    assert set(re.findall(r"`(\w+)`", row)) == settings
    refused = page.partition("| refused with 409 `upgrade_not_finished` |")[2].partition("\n")[0]
    assert {*LATE_SETTINGS, *LATE_BACKENDS} <= set(re.findall(r"`(\w+)`", refused))


@pytest.mark.parametrize("page", PAGES_OF_SERVICES, ids=lambda page: page.parent.name)
def test_the_page_of_a_service_begins_with_reads_writes_state_and_failure(page: Path) -> None:
    table = page.read_text().partition("| | |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
    assert {"reads", "writes", "state"} <= set(rows)
    assert any(re.search(r"fails|down|killed", row) for row in rows)
