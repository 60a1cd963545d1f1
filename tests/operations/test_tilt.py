"""The Tiltfile, run by a Starlark interpreter: it says what compose says, and its buttons work."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import starlark
import yaml

from infra.supervisor.stack import AGENT, PARTS, SERVICES, STEPS
from tests.e2e.stand import Stand, eventually
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())[
    "services"
]
ALL_PROFILES = sorted({name for run in COMPOSE.values() for name in run.get("profiles", ())})
BUTTONS = {"regenerate-contracts", "run-tests", "inject-a-fault", "replay-a-trace"}
RECORDED = (
    "docker_compose",
    "docker_build",
    "dc_resource",
    "local_resource",
    "sync",
    "fall_back_on",
    "restart_container",
    "local",
)
STRUCTS = """
config = struct(define_string_list=_define, parse=_parse)
os = struct(getenv=_getenv)
"""


@dataclass
class Tilt:
    """The calls of the Tiltfile, with these profiles and environment."""

    profiles: tuple[str, ...] | None = None
    env: dict[str, str] = field(default_factory=dict)
    calls: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        module = starlark.Module()
        for name in RECORDED:
            module.add_callable(name, self._recorder(name))
        for name, answer in self._answers().items():
            module.add_callable(name, answer)
        module["TRIGGER_MODE_MANUAL"], module["TRIGGER_MODE_AUTO"] = "manual", "auto"
        extension = starlark.LibraryExtension
        known = starlark.Globals.extended_by([extension.StructType])
        for code in (STRUCTS, (ROOT / "Tiltfile").read_text()):
            tree = starlark.parse("Tiltfile", code, starlark.Dialect.extended())
            starlark.eval(module, tree, known)

    def _answers(self) -> dict[str, Any]:
        output = {} if self.profiles is None else {"profile": list(self.profiles)}
        return {
            "_define": lambda name, **more: None,
            "_parse": lambda: output,
            "_getenv": lambda name, default="": self.env.get(name, default),
            "read_file": lambda path: (ROOT / path).read_text(),
            "read_yaml": lambda path: yaml.safe_load((ROOT / path).read_text()),
            "encode_yaml": yaml.safe_dump,
        }

    def _recorder(self, name: str) -> Any:
        self.calls[name] = []

        def record(*args: Any, **more: Any) -> list[str]:
            self.calls[name].append((args, more))
            return [name, *map(str, args)]

        return record

    @property
    def resources(self) -> dict[str, dict[str, Any]]:
        return {args[0]: more for args, more in self.calls["dc_resource"]}

    @property
    def locals(self) -> dict[str, dict[str, Any]]:
        return {args[0]: more for args, more in self.calls["local_resource"]}


@pytest.fixture(scope="module")
def tilt() -> Tilt:
    return Tilt(profiles=tuple(ALL_PROFILES))


def test_each_resource_is_a_compose_service_and_waits_for_what_it_depends_on(tilt: Tilt) -> None:
    resources = {name: set(more["resource_deps"]) for name, more in tilt.resources.items()}
    assert resources == {name: set(run.get("depends_on", ())) for name, run in COMPOSE.items()}
    (((files,), more),) = tilt.calls["docker_compose"]
    assert files[0] == "docker-compose.yml"
    assert f"COMPOSE_PROJECT_NAME={more['project_name']}" in (ROOT / ".env").read_text()
    assert sorted(more["profiles"]) == ALL_PROFILES


def test_a_resource_is_left_out_with_its_profile_and_its_dependents_do_not_wait() -> None:
    core = Tilt(profiles=("core",))
    wanted = {name for name, run in COMPOSE.items() if "core" in run.get("profiles", ["core"])}
    assert set(core.resources) == wanted
    for more in core.resources.values():
        assert set(more["resource_deps"]) <= wanted


def test_without_a_word_there_is_something_to_see() -> None:
    ((_, more),) = Tilt().calls["docker_compose"]
    assert more["profiles"] == ["core", "observability"]


def test_resources_are_grouped_as_the_list_of_the_stack_has_them(tilt: Tilt) -> None:
    kinds: dict[str, Iterable[Any]] = {"parts": PARTS, "steps": STEPS, "services": SERVICES}
    known = {unit.name: kind for kind, units in kinds.items() for unit in units}
    known[AGENT] = "services"
    for name, more in tilt.resources.items():
        special = [profile for profile in COMPOSE[name].get("profiles", ()) if profile != "core"]
        assert more["labels"] == (special[:1] or [known[name]]), name
        is_step = known.get(name) == "steps"
        assert more["trigger_mode"] == ("manual" if is_step else "auto"), name


def test_new_code_goes_to_where_the_image_has_it_and_can_be_written_there(tilt: Tilt) -> None:
    (((image, context), build),) = tilt.calls["docker_build"]
    assert f"BERTH_IMAGE={image}" in (ROOT / ".env").read_text()
    assert context == "."
    lines = (ROOT / build["dockerfile"]).read_text().splitlines()
    last = lines[max(n for n, line in enumerate(lines) if line.startswith("FROM")) :]
    copied = [line.split()[1:] for line in last if line.startswith("COPY") and "--from" not in line]
    synced = [list(args) for args, _ in tilt.calls["sync"]]
    assert synced == [[f"./{source}", f"/berth/{target}"] for source, target in copied]
    assert build["only"] == [source for source, _ in copied]
    for (paths,), _ in tilt.calls["fall_back_on"]:
        assert all((ROOT / path).is_file() for path in paths)
    assert build["live_update"][0][0] == "fall_back_on"
    assert build["live_update"][-1] == ["restart_container"]
    (((files,), _),) = tilt.calls["docker_compose"]
    overlay = yaml.safe_load(files[1])["services"]
    ours = {name for name, run in COMPOSE.items() if run.get("image") == "${BERTH_IMAGE}"}
    assert overlay == {name: {"read_only": False} for name in ours}


def test_another_image_is_set_once_in_the_environment() -> None:
    (((image, _), build),) = Tilt(env={"BERTH_IMAGE": "mine:1", "PYTHON_IMAGE": "py:3"}).calls[
        "docker_build"
    ]
    assert (image, build["build_args"]) == ("mine:1", {"PYTHON_IMAGE": "py:3"})


@pytest.mark.process
def test_what_goes_before_and_after_the_containers_is_a_word_of_compose(tilt: Tilt) -> None:
    """Both need Docker to run; here it is enough that they are asked for by their right names."""
    (((before,), _),) = tilt.calls["local"]
    after = tilt.locals["open"]["cmd"]
    arguments = subprocess.run(
        [sys.executable, "-m", "infra.compose", "--help"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    for command in (before, after):
        assert command[:3] == [".venv/bin/python", "-m", "infra.compose"]
        assert f"  {command[3]} " in arguments
    assert set(tilt.locals["open"]["resource_deps"]) <= set(COMPOSE)


def test_a_button_does_nothing_until_it_is_pressed(tilt: Tilt) -> None:
    assert set(tilt.locals) == BUTTONS | {"open"}
    for name in BUTTONS:
        more = tilt.locals[name]
        assert (more["auto_init"], more["trigger_mode"]) == (False, "manual"), name
        assert more["env"] == {"BERTH_HOME": ".berth/compose"}
        assert set(more["resource_deps"]) <= {"open"}


@pytest.mark.process
@pytest.mark.parametrize(
    "name, env",
    [
        ("regenerate-contracts", {}),
        ("run-tests", {"PYTEST": "tests/operations/test_tilt.py -k without"}),
    ],
)
def test_a_button_that_needs_no_stack_works(tilt: Tilt, name: str, env: dict[str, str]) -> None:
    press(tilt, name, env)


@pytest.fixture
def stand(shared_stand: Stand) -> Stand:
    return shared_stand


@pytest.mark.stack
def test_pressing_replay_submits_the_jobs_of_a_trace(stand: Stand) -> None:
    mine = Tilt(env={"BERTH_HOME": str(stand.stack.data_dir)})
    before = known_jobs(stand)
    press(mine, "replay-a-trace", {"JOBS": "5", "SPEED": "1000000"})
    eventually(lambda: len(known_jobs(stand) - before) == 5)


def known_jobs(stand: Stand) -> set[str]:
    resources = stand.get("/v1/jobs?limit=1000")
    return {row["job_id"] for row in resources["items"]} if resources else set()


@pytest.mark.stack
def test_pressing_inject_kills_a_service_which_comes_back(stand: Stand) -> None:
    mine = Tilt(env={"BERTH_HOME": str(stand.stack.data_dir)})
    before = stand.pids()
    assert "priority was killed" in press(mine, "inject-a-fault", {"SERVICE": "priority"})
    after = stand.pids()
    assert {name for name in after if after[name] != before[name]} == {"priority"}
    assert stand.ended(stand.submit()["job_id"])["phase"] == "succeeded"


def press(tilt: Tilt, name: str, env: dict[str, str], *more: str) -> str:
    """Run a button's command as Tilt does, and return its output."""
    arguments = tilt.locals[name]
    line = " ".join([arguments["cmd"], *map(shlex.quote, more)])
    here = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=ROOT,
        env={**here, **arguments["env"], **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, (line, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout
