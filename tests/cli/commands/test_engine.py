"""`berth engine` says what is wrong with its options, and serves until it is stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.patience import PATIENCE_S


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ([], "--model"),
        (["--model", "a", "--model", "a"], "one name"),
        (["--model", "a", "--speed", "0"], "above 0"),
        (["--model", "a", "--failures", "nope=1"], "--failures: 'nope' is no fault"),
        (["--model", "a", "--api-key-file", "/nowhere"], "--api-key-file: /nowhere"),
        (["--model", "a", "--port", "-1"], "--port"),
    ],
)
def test_options_that_no_engine_has_are_bad_input(options: list[str], rule: str) -> None:
    result = CliRunner().invoke(app, ["engine", *options])
    text = result.output + str(result.exception)
    assert result.exit_code != 0
    assert rule in text


def test_a_file_of_keys_without_a_key_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("\n")
    words = ["engine", "--model", "a", "--api-key-file", str(tmp_path / "keys")]
    assert "has no key" in str(CliRunner().invoke(app, words).exception)


@pytest.mark.process
def test_the_command_serves_until_it_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("one\ntwo\n")
    words = ["--model", "m", "--port", "0", "--speed", "0.01", "--json"]
    words += ["--api-key-file", str(tmp_path / "keys")]
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "engine", *words],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
        env=dict(os.environ),
    )
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        assert url.startswith("http://127.0.0.1:")
        with urlopen(url.removesuffix("/v1") + "/health", timeout=PATIENCE_S) as response:
            assert response.status == 200
            assert response.headers["server"] == "berth-emulated-engine"
        stream = {"model": "m", "prompt": "a", "max_tokens": 5000, "stream": True}
        headers = {"authorization": "Bearer two"}
        asked = Request(f"{url}/completions", json.dumps(stream).encode(), headers)
        with urlopen(asked, timeout=PATIENCE_S) as response:
            assert response.status == 200
            process.terminate()
            assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()
