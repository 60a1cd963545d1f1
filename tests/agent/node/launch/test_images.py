"""Images that the engine is asked for, and refusals of them."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from berth_agent.linux import processes
from berth_agent.node.config import Config
from berth_agent.node.launch.images import Engine, Images, _refused
from berth_agent.step.checks import StartRefused
from tests.agent.step_bench import until

pytestmark = pytest.mark.process

ENGINE = """#!/bin/sh
echo "$*" >> {calls}
case "$*" in
  "image inspect -- "*) cat {answer};;
  pull*slow*) exec sleep 600;;
  pull*huge*) head -c 64M /dev/zero > {answer}.layer; exec sleep 600;;
  pull*) cp {fresh} {answer};;
esac
"""
"""An engine that answers like Podman: it finds an image also by the end of a name."""


class Bench:
    """A script in place of the engine, which notes how it is called."""

    def __init__(self, tmp: Path) -> None:
        self.calls, self.answer, self.fresh = tmp / "calls", tmp / "answer", tmp / "fresh"
        self.answer.write_text("[]")
        self.fresh.write_text("[]")
        self.config = Config(state=str(tmp))
        self.token = f"bench:{secrets.token_hex(8)}"
        program = tmp / "podman"
        program.write_text(ENGINE.format(calls=self.calls, answer=self.answer, fresh=self.fresh))
        program.chmod(0o755)
        self.engine = Engine(str(program), "overlay", "/images")
        self.images = Images(self.config, self.engine)

    def pull(self, name: str, stopped: Callable[[], str] = lambda: "") -> str:
        return self.images.pull(name, self.token, stopped)

    def called(self) -> list[str]:
        return self.calls.read_text().splitlines()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def image(number: str, name: str) -> str:
    return f'[{{"Id": "{number}", "RepoTags": ["{name}"], "RepoDigests": null}}]'


def test_an_image_of_another_registry_does_not_stand_for_a_short_name(bench: Bench) -> None:
    bench.answer.write_text(image("666", "evil.example/docker.io/library/python:3"))
    bench.fresh.write_text(image("1", "docker.io/library/python:3"))
    assert bench.pull("python:3") == "1"
    name = "docker.io/library/python:3"
    asked = f"image inspect -- {name}"
    assert bench.called() == [asked, f"pull -q docker://{name}", asked]
    assert bench.pull("python:3") == "1"
    assert bench.called()[3:] == [asked], "it is there"


def test_what_a_job_has_brought_is_noted_with_its_last_use(bench: Bench) -> None:
    """The image of an operator, which was there before, is not: it is never removed."""
    bench.answer.write_text(image("1", "r.example/theirs:1"))
    bench.pull("r.example/theirs:1")
    noted = Path(bench.config.state, "images.json")
    assert not noted.exists()
    bench.fresh.write_text(image("2", "r.example/ours:1"))
    bench.pull("r.example/ours:1")
    [(name, first_s)] = json.loads(noted.read_text()).items()
    bench.pull("r.example/ours:1")
    [last_s] = json.loads(noted.read_text()).values()
    assert name == "r.example/ours:1" and last_s > first_s


def test_an_image_gives_no_orders_to_the_runtime(bench: Bench) -> None:
    """Podman passes annotations of an image on, and crun obeys some of them as root."""
    [made] = json.loads(image("1", "r.example/train:1"))
    made["Annotations"] = {"org.example.kept": "1"}
    bench.answer.write_text(json.dumps([made]))
    assert bench.pull("r.example/train:1") == "1"
    made["Annotations"] = {"run.oci.seccomp_bpf_data": "AAAA"}
    bench.answer.write_text(json.dumps([made]))
    with pytest.raises(StartRefused) as refusal:
        bench.pull("r.example/train:1")
    assert (refusal.value.reason, refusal.value.permanent) == ("image_unusable", True)
    assert "run.oci.seccomp_bpf_data" in refusal.value.detail


def test_a_pull_ends_with_the_worker_that_needs_it(bench: Bench) -> None:
    def stopped() -> str:
        return "fenced" if list(processes.with_token(bench.token)) else ""

    with pytest.raises(StartRefused) as refusal:
        bench.pull("r.example/slow:1", stopped)
    assert (refusal.value.reason, refusal.value.permanent) == ("fenced", False)
    assert not list(processes.with_token(bench.token))


def test_a_pull_that_writes_too_much_ends(bench: Bench) -> None:
    small = Images(replace(bench.config, image_gib=1 / 32), bench.engine)
    with pytest.raises(StartRefused) as refusal:
        small.pull("r.example/huge:1", bench.token, lambda: "")
    assert (refusal.value.reason, refusal.value.permanent) == ("image_too_large", True)
    assert "0.03125 (image_gib)" in refusal.value.detail
    assert not list(processes.with_token(bench.token))


def test_a_pull_ends_before_the_disk_of_images_is_full(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("berth_agent.linux.disk.free_gib", lambda folder: 0.5)
    with pytest.raises(StartRefused) as refusal:
        bench.pull("r.example/slow:1")
    assert (refusal.value.reason, refusal.value.permanent) == ("disk_full", False)


def test_a_pull_ends_with_the_agent_and_after_its_time(bench: Bench) -> None:
    reasons = []

    def pull() -> None:
        with pytest.raises(StartRefused) as refusal:
            bench.pull("r.example/slow:1")
        reasons.append(refusal.value.reason)

    thread = threading.Thread(target=pull)
    thread.start()
    until(lambda: bool(list(processes.with_token(bench.token))))
    bench.images.close()
    assert not list(processes.with_token(bench.token))
    thread.join()
    short = Images(replace(bench.config, image_pull_s=0.0), bench.engine)
    with pytest.raises(StartRefused) as refusal:
        short.pull("r.example/slow:1", bench.token, lambda: "")
    assert [*reasons, refusal.value.reason] == ["node_draining", "image_unreachable"]


def test_an_id_is_a_name_as_any_other(bench: Bench) -> None:
    bench.answer.write_text(image("0123456789ab", "r.example/private:1"))
    with pytest.raises(StartRefused):
        bench.pull("0123456789ab")
    assert bench.called()[0] == "image inspect -- docker.io/library/0123456789ab:latest"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("writing blob: storing blob to file: no space left on device", "disk_full"),
        ("reading manifest 9 in docker.io/library/python: manifest unknown", "image_not_found"),
        ("reading manifest: requested access to the resource is denied", "image_not_found"),
        ("pinging container registry: dial tcp: lookup r.io: no such host", "image_unreachable"),
        ("Get https://r.io/v2/: dial tcp 10.0.0.1:443: i/o timeout", "image_unreachable"),
    ],
)
def test_an_image_that_no_registry_has_is_not_tried_again(answer: str, reason: str) -> None:
    refusal = _refused("python:9", f"Trying to pull...\nError: {answer}\n")
    assert (refusal.reason, refusal.permanent) == (reason, reason == "image_not_found")
    assert refusal.detail == f"python:9: {answer}"


def test_a_node_without_an_engine_refuses_and_another_may_do_better() -> None:
    with pytest.raises(StartRefused) as refusal:
        Images(Config(), None).pull("python:3", "token", lambda: "")
    assert (refusal.value.reason, refusal.value.permanent) == ("no_container_runtime", False)


def test_what_is_no_name_of_an_image_reaches_no_engine(bench: Bench) -> None:
    with pytest.raises(StartRefused) as refusal:
        bench.pull("dir:/etc")
    assert (refusal.value.reason, refusal.value.permanent) == ("image_not_found", True)
    assert not bench.calls.exists()
