"""Arguments, exit codes and error lines of the command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.commands.demo import broker_of, time_scale
from cli.errors import BadInput
from cli.main import app

Ended = subprocess.CompletedProcess[str]
Berth = Callable[..., Ended]


@pytest.fixture
def berth(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Berth:
    """The command in this process, which ends as that of a shell would."""

    def run(*words: str, **env: str) -> Ended:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["berth", *words])
        if words[:1] == ("bench",) and len(words) > 1:
            # Another test of this process may have imported it; a shell's command never has.
            monkeypatch.delitem(sys.modules, f"benchmarks.{words[1]}", raising=False)
        with pytest.raises(SystemExit) as ended:
            app()
        written = capsys.readouterr()
        return Ended(words, int(ended.value.code or 0), written.out, written.err)

    return run


def process(*words: str, **env: str) -> Ended:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={"PATH": "/usr/bin:/bin", **env},
    )


def test_a_check_picks_its_time_scale_and_a_show_has_a_fixed_one() -> None:
    assert time_scale("", check=True) is None
    assert time_scale("auto", check=False) is None
    assert time_scale("", check=False) == 600
    assert time_scale("42.5", check=True) == 42.5


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "fast", "1e9"])
def test_an_absurd_speed_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput):
        time_scale(text, check=False)


def test_a_broker_is_one_of_two() -> None:
    assert broker_of("kafka") == "kafka"
    with pytest.raises(BadInput):
        broker_of("rabbit")


@pytest.mark.process
def test_help_names_every_command_and_starts_without_the_heavy_parts() -> None:
    completed = process("-m", "cli", "--help")
    assert completed.returncode == 0
    for name in ("up", "demo", "submit", "why", "trace", "drain", "tenants", "dead", "bench"):
        assert name in completed.stdout
    heavy = "import sys, cli.main; print([m for m in sys.modules if m.split('.')[0] in "
    heavy += "('aiokafka', 'kafka', 'pydantic', 'pyarrow', 'asyncpg', 'rich', 'fastapi', "
    heavy += "'httpx2')])"
    assert process("-c", heavy).stdout.strip() == "[]"


@pytest.mark.process
def test_a_process_has_the_exit_code_and_the_line_of_its_error() -> None:
    completed = process("-m", "cli", "jobs", BERTH_URL="http://127.0.0.1:9")
    assert (completed.returncode, completed.stdout) == (3, "")
    assert completed.stderr.startswith("berth: ")
    assert len(completed.stderr.splitlines()) == 1


def test_a_wrong_argument_exits_with_2_and_writes_to_stderr_alone(berth: Berth) -> None:
    for words in (["nonsense"], ["jobs", "--limit", "0"], ["demo", "--speed", "x"], ["submit"]):
        completed = berth(*words, BERTH_URL="http://127.0.0.1:9")
        assert (completed.returncode, completed.stdout) == (2, ""), words
        assert "Traceback" not in completed.stderr


def test_an_unreachable_api_exits_with_3_and_one_line(berth: Berth, tmp_path: Path) -> None:
    for env in ({"BERTH_HOME": str(tmp_path)}, {"BERTH_URL": "http://127.0.0.1:9"}):
        completed = berth("jobs", "--json", **env)
        assert (completed.returncode, completed.stdout) == (3, "")
        assert completed.stderr.startswith("berth: ")
        assert len(completed.stderr.splitlines()) == 1


def test_a_command_that_needs_a_stack_exits_with_3_without_one(
    berth: Berth, tmp_path: Path
) -> None:
    for words in (["verify"], ["projections", "status"], ["access", "bootstrap"], ["status"]):
        completed = berth(*words, "--json", BERTH_HOME=str(tmp_path))
        assert completed.returncode == 3, completed.stderr
        assert len(completed.stderr.splitlines()) <= 1


def test_stopping_nothing_is_fine(berth: Berth, tmp_path: Path) -> None:
    completed = berth("down", "--json", BERTH_HOME=str(tmp_path))
    assert completed.returncode == 0
    assert json.loads(completed.stdout)["stopped"] is False


def test_a_trace_that_cannot_be_read_is_named_before_anything_starts(
    berth: Berth, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"no parquet")
    completed = berth("demo", "--check", "--trace", str(bad), "--data", str(tmp_path / "data"))
    assert completed.returncode == 2
    assert str(bad) in completed.stderr
    assert len(completed.stderr.splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_a_trace_without_a_column_names_the_column(berth: Berth, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "short.parquet"
    pq.write_table(pa.table({"job_id": ["a"], "submit_s": [0.0], "gpus": [1.0]}), path)
    completed = berth("demo", "--check", "--trace", str(path), "--data", str(tmp_path / "data"))
    assert completed.returncode == 2
    assert "duration_s" in completed.stderr


def test_a_benchmark_that_is_not_there_is_not_found(berth: Berth) -> None:
    assert berth("bench", "nope").returncode == 4
    assert berth("bench", "no.pe").returncode == 2


def test_benchmarks_are_listed_where_none_is_named(berth: Berth) -> None:
    assert {"spine", "policies"} <= set(berth("bench").stdout.split())


def test_the_help_of_a_benchmark_is_its_own(berth: Berth) -> None:
    assert "Run a benchmark" in berth("bench", "--help").stdout
    assert "usage: berth bench spine" in berth("bench", "spine", "--help").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("policies", "--quick", "--model", "nope"), "learned: 'nope-preempt', must be one of"),
        (("chaos", "--only", "nope"), "only=nope: parts are stall,"),
    ],
)
def test_a_benchmark_reports_an_invalid_option(
    berth: Berth, words: tuple[str, ...], message: str
) -> None:
    completed = berth("bench", *words)
    assert completed.returncode == 2
    assert completed.stderr.startswith(f"berth bench {words[0]}: {message}")
    assert completed.stderr.count("\n") == 1
