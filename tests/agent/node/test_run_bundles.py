"""Workers start with the files of a bundle, which a tenant made, and nothing else on the node."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from berth_agent.messages import PART_BYTES
from berth_agent.node import unpack
from berth_client.bundles import packed
from shared.contracts.bundles import Manifest
from shared.contracts.failures import Failure
from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import NodeBench, W, a_node, launch, run

pytestmark = pytest.mark.process
UID = 70_001


@pytest.fixture
def node(double: ExecutorDouble) -> Iterator[NodeBench]:
    first = UID - 1 if os.geteuid() == 0 else 0
    with a_node(double, uid_first=first) as node:
        double.wait_for("registration")
        yield node


def offered(double: ExecutorDouble, content: bytes) -> str:
    """Have the executor store an archive; return the name of its bundle."""
    parts = [content[at : at + PART_BYTES] for at in range(0, len(content), PART_BYTES)]
    names = tuple(hashlib.sha256(part).hexdigest() for part in parts)
    double.bundle = Manifest(parts=names, size_bytes=len(content))
    double.parts = [base64.b64encode(part).decode() for part in parts]
    return double.bundle.bundle


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def entry(name: str, **fields: Any) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(member, field, value)
    return member


def test_a_worker_starts_in_its_folder_with_the_files(
    double: ExecutorDouble, node: NodeBench, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / "pkg").mkdir(parents=True)
    (project / "pkg" / "mod.py").write_text("X = 'bundled'\n")
    (project / "weights").write_bytes(os.urandom(PART_BYTES + 10))
    (project / "run.sh").write_text("#!/bin/sh\ncat pkg/mod.py; stat -c %s:%u weights; pwd\n")
    (project / "run.sh").chmod(0o755)
    with packed(project) as bundle:
        name = offered(double, b"".join(bundle.part(part) for part in bundle.parts))
    run(double, "./run.sh; ls -A", bundle=name, tenant_number=1)
    assert double.wait_for("exited", W).exit_code == 0
    owner = UID if os.geteuid() == 0 else os.geteuid()
    printed = node.output(W).splitlines()
    assert printed[:2] == ["X = 'bundled'", f"{PART_BYTES + 10}:{owner}"]
    assert printed[2] == str(node.state / "work" / "j1.1.0")
    assert printed[3:] == ["pkg", "run.sh", "weights"]
    assert not list(node.state.glob("**/bundle.tar.gz"))


def link_out() -> bytes:
    """Return an archive with a link out of the folder, and a file below that link."""
    return archive(
        (entry("out", type=tarfile.SYMTYPE, linkname="/tmp"), b""), (entry("out/file"), b"x")
    )


HOSTILE: dict[str, Callable[[], bytes]] = {
    "absolute link": link_out,
    "link above": lambda: archive((entry("up", type=tarfile.SYMTYPE, linkname="../../.."), b"")),
    "hard link": lambda: archive((entry("hard", type=tarfile.LNKTYPE, linkname="/etc/hosts"), b"")),
    "name above": lambda: archive((entry("../../above"), b"x")),
    "device": lambda: archive((entry("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3), b"")),
    "not an archive": lambda: b"\x1f\x8b" + b"x" * 100,
    "half an archive": lambda: archive((entry("zeros"), os.urandom(4096)))[:-2000],
}


def refusal(double: ExecutorDouble, bundle: str, name: str = W) -> Failure:
    """Order a worker with the bundle; return why its node refuses it."""
    double.order("prepare", name, launch=launch("true", bundle=bundle, tenant_number=1))
    failure: Failure = double.wait_for("refused", name).failure
    return failure


def test_what_leaves_the_folder_is_refused_for_good(
    double: ExecutorDouble, node: NodeBench
) -> None:
    for number, (kind, make) in enumerate(HOSTILE.items()):
        failure = refusal(double, offered(double, make()), f"0/{number + 5}/0/0")
        assert (failure.reason, failure.permanent) == ("bundle_unusable", True), kind
    assert not list(node.state.glob("**/above")) and not Path("/tmp/file").exists()


def test_a_bundle_that_grows_is_refused(double: ExecutorDouble) -> None:
    with a_node(double, bundle_gib=0.001) as node:
        double.wait_for("registration")
        failure = refusal(double, offered(double, archive((entry("zeros"), bytes(2**22)))))
        assert failure.reason == "bundle_unusable"
        assert "1073742 bytes" in failure.detail
        assert not list(node.state.glob("**/zeros"))


def test_bytes_that_the_name_does_not_promise_start_nothing(
    double: ExecutorDouble, node: NodeBench
) -> None:
    name = offered(double, archive((entry("train.py"), b"print()")))
    double.parts = [base64.b64encode(archive((entry("train.py"), b"evil()"))).decode()]
    failure = refusal(double, name)
    assert (failure.reason, failure.permanent) == ("bundle_unreachable", False)
    assert "another SHA-256" in failure.detail


def test_a_bundle_that_is_gone_is_named(double: ExecutorDouble, node: NodeBench) -> None:
    failure = refusal(double, f"sha256:{'0' * 64}")
    assert (failure.reason, failure.permanent) == ("bundle_missing", True)


def test_a_stop_ends_an_unfinished_start(double: ExecutorDouble, node: NodeBench) -> None:
    bundle = offered(double, archive((entry("a"), b"x")))
    double.parts_away = True
    double.order("prepare", W, launch=launch("true", bundle=bundle, tenant_number=1))
    double.wait(lambda: double.part_requests > 0)
    double.order("stop", W)
    double.wait_for("stopped", W)


def test_an_outage_of_the_executor_is_endured(double: ExecutorDouble, node: NodeBench) -> None:
    bundle = offered(double, archive((entry("a"), b"x")))
    double.parts_away = True
    double.order("prepare", W, launch=launch("cat a", bundle=bundle, tenant_number=1))
    double.wait(lambda: double.part_requests > 1)
    with double.changed:
        double.parts_away = False
        double.drop_session()
    double.wait_for("ready", W)


def test_files_and_bytes_are_counted(tmp_path: Path) -> None:
    many = archive((entry("a"), b"x" * 10), (entry("b"), b"x" * 10))
    unpack.unpack(io.BytesIO(many), str(tmp_path), 20)
    assert (tmp_path / "b").read_bytes() == b"x" * 10
    with pytest.raises(unpack.TooLarge):
        unpack.unpack(io.BytesIO(many), str(tmp_path), 19)
