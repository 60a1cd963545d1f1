"""Workers start with the files of a bundle, which a tenant made, and nothing else on the node."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from berth_agent.messages import PART_BYTES
from berth_agent.node.launch import unpack
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


def link_out() -> bytes:
    """Return an archive with a link out of the folder, and a file below that link."""
    return archive(
        (entry("out", type=tarfile.SYMTYPE, linkname="/tmp"), b""), (entry("out/file"), b"x")
    )


def long_way_out() -> bytes:
    """Return an archive whose links lead out by a path that is longer than the kernel resolves:
    what `realpath` says of it is not where it leads (CVE-2025-4517)."""
    steps, path, members = "abcdefghijklmnop", "", []
    for step in steps:
        members.append((entry(f"{path}{'d' * 247}", type=tarfile.DIRTYPE), b""))
        members.append((entry(f"{path}{step}", type=tarfile.SYMTYPE, linkname="d" * 247), b""))
        path += f"{'d' * 247}/"
    up = f"{'/'.join(steps)}/{'l' * 254}"
    members.append((entry(up, type=tarfile.SYMTYPE, linkname="../" * len(steps)), b""))
    members.append((entry("escape", type=tarfile.SYMTYPE, linkname=f"{up}/../out"), b""))
    return archive(*members, (entry("escape/new"), b"x"))


def long_name() -> bytes:
    """Return a small archive of which a header takes 400 MiB."""
    member = entry("././@LongLink", type=tarfile.GNUTYPE_LONGNAME, size=400 * 2**20)
    squeeze = zlib.compressobj(9, wbits=31)
    parts = [squeeze.compress(member.tobuf(tarfile.GNU_FORMAT))]
    parts += [squeeze.compress(b"a" * 2**20) for _ in range(400)]
    return b"".join([*parts, squeeze.flush()])


HOSTILE: dict[str, Callable[[], bytes]] = {
    "absolute link": link_out,
    "link above": lambda: archive((entry("up", type=tarfile.SYMTYPE, linkname="../../.."), b"")),
    "hard link": lambda: archive((entry("hard", type=tarfile.LNKTYPE, linkname="/etc/hosts"), b"")),
    "name above": lambda: archive((entry("../../above"), b"x")),
    "device": lambda: archive((entry("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3), b"")),
    "not an archive": lambda: b"\x1f\x8b" + b"x" * 100,
    "half an archive": lambda: archive((entry("zeros"), os.urandom(4096)))[:-2000],
    "half an archive, large": lambda: archive((entry("zeros"), os.urandom(2**16)))[:-2000],
    "refused before its end": lambda: archive(
        (entry("../above"), b"x"), (entry("weights"), os.urandom(3 * PART_BYTES))
    ),
    "a long way out": long_way_out,
    "a header of 400 MiB": long_name,
    "a long name": lambda: archive((entry("a" * 300), b"x")),
    "a long path": lambda: archive((entry("a/" * 2500 + "a"), b"x")),
    "a file below a file": lambda: archive((entry("a"), b"x"), (entry("a/b"), b"x")),
    "NUL in a name": lambda: archive((entry("a", pax_headers={"path": "a\0b"}), b"x")),
    "a negative size": lambda: archive((entry("a", pax_headers={"size": "-5"}), b"x")),
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
    assert (
        not list(node.state.glob("**/above"))
        and not list(node.state.glob("**/out"))
        and not Path("/tmp/file").exists()
    )


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


def test_files_of_a_bundle_are_no_profile_of_its_shell(double: ExecutorDouble) -> None:
    content = archive((entry(".bash_profile"), b"export PLANTED=1\n"))
    first = UID - 1 if os.geteuid() == 0 else 0
    with a_node(double, login_shell=True, uid_first=first) as node:
        double.wait_for("registration")
        run(double, "ls -A; env", bundle=offered(double, content), tenant_number=1)
        assert double.wait_for("exited", W).exit_code == 0
        assert ".bash_profile" in node.output(W) and "PLANTED" not in node.output(W)


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


def unpacked(source: io.BytesIO, folder: str, most_bytes: int) -> None:
    root = os.open(folder, unpack.FOLDER)
    try:
        unpack.Unpacking(root, most_bytes).unpack(source)
    finally:
        os.close(root)


def test_files_and_bytes_are_counted(tmp_path: Path) -> None:
    many = archive((entry("a"), b"x" * 10), (entry("b"), b"x" * 10))
    unpacked(io.BytesIO(many), str(tmp_path), 20)
    assert (tmp_path / "b").read_bytes() == b"x" * 10
    with pytest.raises(unpack.Unusable):
        unpacked(io.BytesIO(many), str(tmp_path), 19)


def test_links_come_last_and_lead_to_what_their_archive_has(tmp_path: Path) -> None:
    content = archive(
        (entry("top", type=tarfile.SYMTYPE, linkname="pkg/../pkg/mod.py"), b""),
        (entry("pkg/back", type=tarfile.SYMTYPE, linkname="../run.sh"), b""),
        (entry("./pkg/mod.py"), b"1"),
        (entry("run.sh", mode=0o4777), b"2"),
    )
    for _ in range(2):  # A start that was interrupted is begun again in the same folder.
        unpacked(io.BytesIO(content), str(tmp_path), 20)
    assert (tmp_path / "top").read_bytes() == b"1"
    assert (tmp_path / "pkg" / "back").read_bytes() == b"2"
    assert (tmp_path / "run.sh").stat().st_mode & 0o7022 == 0
    through = archive(
        (entry("dir", type=tarfile.SYMTYPE, linkname="pkg"), b""), (entry("dir/mod.py"), b"3")
    )
    with pytest.raises(OSError):
        unpacked(io.BytesIO(through), str(tmp_path), 20)
    assert (tmp_path / "pkg" / "mod.py").read_bytes() == b"1"


@pytest.mark.parametrize("mtime", ["nan", "inf", "1e300"])
def test_times_of_files_are_not_looked_at(tmp_path: Path, mtime: str) -> None:
    content = archive((entry("a", pax_headers={"mtime": mtime}), b"x"))
    unpacked(io.BytesIO(content), str(tmp_path), 20)
    assert (tmp_path / "a").read_bytes() == b"x"
