"""Environments of login shells, whose profiles are code of tenants."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth_agent.linux import processes
from berth_agent.node.config import Config
from berth_agent.node.system import login
from berth_agent.node.system.login import LoginEnvironments
from berth_agent.node.system.users import WorkerUser
from tests.agent.step_bench import until

pytestmark = pytest.mark.process

NAMESPACES = pytest.mark.parametrize("pid_namespace", [True, False])


class LoginBench:
    """A user whose profile a test writes, and a mark of everything that the profile starts."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.token = f"login-{os.getpid()}:{home.name}"

    def read(
        self,
        profile: str,
        pid_namespace: bool = True,
        known: LoginEnvironments | None = None,
        has_home: bool = True,
    ) -> tuple[dict[str, str], str]:
        (self.home / ".bash_profile").write_text(profile)
        environments = known or LoginEnvironments(Config(), pid_namespace)
        user = WorkerUser(None, os.getegid(), (), str(self.home) if has_home else "", "")
        return environments.of_user(user, str(self.home), self.token, ())

    def living(self) -> list[int]:
        return list(processes.with_token(self.token))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoginBench]:
    monkeypatch.setattr(login, "LIMIT_S", 60.0)
    bench = LoginBench(tmp_path)
    yield bench
    processes.kill_each(bench.living())


@NAMESPACES
def test_a_profile_sets_variables_whatever_it_prints(
    bench: LoginBench, pid_namespace: bool
) -> None:
    profile = "export EDITOR=vi; echo welcome; echo quota >&2; export TWO='a\nb'"
    variables, problem = bench.read(profile, pid_namespace)
    assert (variables["EDITOR"], variables["TWO"], problem) == ("vi", "a\nb", "")
    assert variables["HOME"] == str(bench.home) and "SHLVL" not in variables


@NAMESPACES
def test_what_a_profile_starts_ends_with_it(bench: LoginBench, pid_namespace: bool) -> None:
    profile = "setsid sleep 600 & setsid sh -c 'sleep 601 & sleep 602' & export EDITOR=vi"
    variables, problem = bench.read(profile, pid_namespace)
    assert (variables["EDITOR"], problem) == ("vi", "")
    assert bench.living() == []


@NAMESPACES
@pytest.mark.parametrize(
    ("profile", "reason"),
    [
        ("setsid sleep 600 & sleep 601", "no end within 2 s"),
        ("setsid yes & yes", "its output is larger than 262144 bytes"),
        ("echo no such module; exit 3", "exit code 3: no such module"),
        ("exec true", "it printed no environment"),
        ("kill -9 $$", "SIGKILL"),
    ],
)
def test_a_profile_that_fails_leaves_the_rest_and_says_why(
    bench: LoginBench,
    monkeypatch: pytest.MonkeyPatch,
    profile: str,
    reason: str,
    pid_namespace: bool,
) -> None:
    if reason.startswith("no end"):
        monkeypatch.setattr(login, "LIMIT_S", 2.0)
    variables, problem = bench.read(f"export EDITOR=vi; {profile}", pid_namespace)
    assert problem.startswith(f"login shell: {reason}"), problem
    assert "EDITOR" not in variables and "PATH" in variables
    assert bench.living() == []


def test_a_profile_that_failed_is_read_again_and_one_that_worked_is_not(bench: LoginBench) -> None:
    known = LoginEnvironments(Config(), pid_namespaces=True)
    assert bench.read("exit 1", known=known)[1]
    assert bench.read("export A=1", known=known)[0]["A"] == "1"
    assert bench.read("export A=2", known=known)[0]["A"] == "1"


def test_what_a_worker_has_in_its_own_folder_is_no_profile_of_the_next(bench: LoginBench) -> None:
    known = LoginEnvironments(Config(), pid_namespaces=True)
    assert bench.read("export A=1", known=known, has_home=False)[0]["A"] == "1"
    assert "A" not in bench.read("", known=known, has_home=False)[0]


def test_a_profile_that_hangs_delays_no_other_tenant(bench: LoginBench, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    os.mkfifo(tmp_path / "fifo")
    known = LoginEnvironments(Config(), pid_namespaces=True)
    first: list[str] = []
    profile = f"echo $$ > {tmp_path}/begun; read A < {tmp_path}/fifo; export A"
    hung = threading.Thread(target=lambda: first.append(bench.read(profile, known=known)[0]["A"]))
    hung.start()
    until((tmp_path / "begun").exists)
    assert LoginBench(other).read("export A=2", known=known)[0]["A"] == "2"
    assert first == []
    (tmp_path / "fifo").write_text("1\n")
    hung.join()
    assert first == ["1"]


def test_a_folder_without_files_is_as_that_of_any_worker(bench: LoginBench, tmp_path: Path) -> None:
    known = LoginEnvironments(Config(), pid_namespaces=True)
    user = WorkerUser(None, os.getegid(), (), "", "")
    (tmp_path / "empty").mkdir()
    known.of_user(user, str(tmp_path / "empty"), bench.token, ())
    assert "A" not in bench.read("export A=1", known=known, has_home=False)[0]
