"""The examples of docs/client.md on a real stack, and the output of a job as it comes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.stand import Stand

pytestmark = pytest.mark.stack
PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
PRINTED = (
    r"succeeded \['a100-\d'\]",
    r"\S+ \d+ \['job.admitted.v1'.*\n(.*\n)*.*'virtual'.* key:\S+",
    r"422 spec.gang.workers .+",
    r"\{'succeeded'\}",
)


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_each_example_of_the_page_works(
    shared_stand: Stand,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int,
) -> None:
    assert len(EXAMPLES) == len(PRINTED)
    monkeypatch.setenv("BERTH_URL", shared_stand.stack.gateway)
    monkeypatch.setenv("BERTH_KEY", shared_stand.keys["ada"])
    monkeypatch.setenv("BERTH_CA", str(shared_stand.stack.ca))
    exec(compile(EXAMPLES[number], f"docs/client.md example {number}", "exec"), {})  # noqa: S102
    printed = capsys.readouterr().out.strip()
    assert re.fullmatch(PRINTED[number], printed), printed
