"""The wrong ways of a first `berth submit`: each is answered by one sentence that says what to do.

Each is typed as a user does, in a folder of its own; the answer has the wrong value, and the rule
or the next step.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.stand import LOCAL_POOL, Stand, a_stand

TRAIN = ("--", "python3", "train.py")
AWAY = "http://127.0.0.1:9"

WITHOUT_STACK = {
    "no control plane": (
        {},
        TRAIN,
        3,
        "no stack in .berth: start one with `berth up`, name its folder with --data or BERTH_HOME",
    ),
    "wrong address": (
        {"BERTH_URL": AWAY},
        TRAIN,
        3,
        f"{AWAY} is not reachable: [Errno 111] Connection refused; BERTH_URL is the address of",
    ),
    "wrong scheme": (
        {"BERTH_URL": "gpu:80"},
        TRAIN,
        2,
        "invalid address: 'gpu:80'; must be http or https",
    ),
    "missing job file": (
        {},
        ("-f", "none.yaml"),
        2,
        "none.yaml: no such file; JSON or YAML, or - for stdin, is allowed",
    ),
    "unknown flag": ({}, ("--gpu", "2", *TRAIN), 2, "No such option: --gpu (Possible options: "),
    "no command": ({}, (), 2, "no command given; use -f FILE or a command after `--`"),
    "array backwards": (
        {},
        ("--array", "9-1", *TRAIN),
        2,
        "--array: '9-1'; a number of jobs, such as 100, or a range of indexes, such as 1-100%10",
    ),
    "relative folder": (
        {},
        ("--workdir", "data", *TRAIN),
        2,
        "workdir: 'data'; an absolute folder of the nodes is allowed; --upload DIR brings files",
    ),
    "variable without a value": (
        {},
        ("--env", "SEED", *TRAIN),
        2,
        "--env: SEED; NAME=VALUE is allowed",
    ),
}
"""Variables, words behind `berth submit`, exit code, and the beginning of what is printed."""

ON_A_STACK = {
    "no key": ({"BERTH_KEY": ""}, TRAIN, 5, "BERTH_KEY holds the key"),
    "wrong key": ({"BERTH_KEY": "a.b"}, TRAIN, 5, "BERTH_KEY holds the key"),
    "unknown pool": (
        {},
        ("--pool", "gpuu", *TRAIN),
        2,
        "pool: 'gpuu'; no such pool; `berth pools list` shows them",
    ),
    "more GPUs than the pool has": (
        {},
        ("--gpus", "64", *TRAIN),
        5,
        "gang.workers: 1: the pool's nodes, 1, could hold 0 workers of 64 GPUs each",
    ),
    "class of operators": (
        {},
        ("--class", "system", "--wait", *TRAIN),
        5,
        "priority_class: 'system': high is the highest class allowed for tenant ada",
    ),
    "folder that does not exist": (
        {},
        ("--workdir", "/none/such", "--follow", *TRAIN),
        1,
        "/none/such",
    ),
    "program that does not exist": ({}, ("--follow", "--", "pyhton", "x"), 1, "pyhton"),
    "image that does not exist": (
        {},
        ("--image", "localhost:9/none:1", "--wait", *TRAIN),
        None,
        "image",
    ),
    "folder to upload that does not exist": ({}, ("--upload", "none", *TRAIN), 2, "--upload: none"),
}


def submit(folder: Path, variables: dict[str, str], words: tuple[str, ...]) -> tuple[int, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BERTH_")}
    command = [sys.executable, "-m", "cli", "submit", *words]
    env = {**kept, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.process
@pytest.mark.parametrize("case", WITHOUT_STACK)
def test_a_mistake_before_a_request_is_named(case: str, tmp_path: Path) -> None:
    variables, words, code, text = WITHOUT_STACK[case]
    check_answer(submit(tmp_path, variables, words), code, text)


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand("failslow", "throttle") as stand:
        yield stand


@pytest.mark.parts
@pytest.mark.stack
@pytest.mark.parametrize("case", ON_A_STACK)
def test_a_mistake_with_a_job_is_named(case: str, stand: Stand, tmp_path: Path) -> None:
    variables, words, code, text = ON_A_STACK[case]
    known = {"BERTH_URL": stand.stack.gateway, "BERTH_KEY": stand.keys["ada"]}
    pool = () if "--pool" in words else ("--pool", LOCAL_POOL)
    check_answer(submit(tmp_path, known | variables, (*pool, *words)), code, text)


def check_answer(answer: tuple[int, str], code: int | None, text: str) -> None:
    returned, output = answer
    assert text in output and "Traceback" not in output, output
    assert returned and code in (None, returned), output
