"""The command `berth-agent`, and joining a pool."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from berth_agent.cli import main
from berth_agent.messages import GpuReading
from berth_agent.node.credentials import identity
from berth_agent.node.credentials.identity import Identity, read_identity, write_identity
from berth_agent.node.credentials.renewal import Credentials
from infra.security.certificates import make
from shared.contracts import agents as wire
from tests.serving import Double, Quiet

DAY_MS = 24 * 3600 * 1000


class GatewayDouble(Double):
    """The gateway's two requests of nodes; it validates them by the contract's models."""

    def __init__(self) -> None:
        self.status = 200
        self.reason = "token_expired"
        self.answers = True
        self.requests: list[tuple[str, str, Any]] = []
        self.expires_at = 2**52
        double = self

        class Handler(Quiet):
            def do_POST(self) -> None:
                endpoint = self.path.rsplit("/", 1)[1]
                model = wire.JoinRequest if endpoint == "join" else wire.RenewRequest
                credential = self.headers.get("Authorization", "")
                message = model.model_validate_json(self.received())
                double.requests.append((endpoint, credential, message))
                if not double.answers:
                    return
                self.answer(double.status, json.dumps(double.answer(message)).encode())

        super().__init__(Handler)

    def answer(self, message: Any) -> dict[str, Any]:
        if self.status != 200:
            return {"reason": self.reason, "detail": "token: expired; make another"}
        return {
            "node_id": getattr(message, "node_id", "n1"),
            "pool": "gpu",
            "approved": False,
            "executors": ["https://executor.example:8443"],
            "expires_at": self.expires_at,
        }


@pytest.fixture
def gateway() -> Iterator[GatewayDouble]:
    gateway = GatewayDouble()
    yield gateway
    gateway.close()


def join(
    gateway: GatewayDouble,
    state: Path,
    *more: str,
    token: tuple[str, ...] = ("--token", "t.secret"),
) -> int:
    flags = ("--node-id", "n1", "--state", str(state))
    return main(["join", gateway.url, *token, *flags, *more])


def test_a_node_joins_with_a_secret_of_its_own(
    gateway: GatewayDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert join(gateway, tmp_path / "state") == 0
    identity = read_identity(str(tmp_path / "state"))
    [(_, _, request)] = gateway.requests
    assert request.token == "t.secret"
    assert request.credential_sha256 == hashlib.sha256(identity.secret.encode()).hexdigest()
    assert identity.credential == f"n1.{identity.secret}" and len(identity.secret) == 64
    assert identity.executors == ("https://executor.example:8443",)
    assert identity.secret not in repr(identity)
    mode = os.stat(tmp_path / "state" / "identity.json").st_mode
    assert stat.S_IMODE(mode) == 0o600
    # Workers have users of their own, and private directories below it.
    assert stat.S_IMODE(os.stat(tmp_path / "state").st_mode) == 0o711
    printed = capsys.readouterr().out
    assert printed == (
        "Joined pool gpu as n1; it works once an operator has run `berth nodes approve n1`.\n"
    )


def test_the_token_is_read_from_a_file_or_from_standard_input(
    gateway: GatewayDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    path.write_text("t.file\n")
    assert join(gateway, tmp_path / "a", token=("--token-file", str(path))) == 0
    for flags in (("--token-file", "-"), ()):
        monkeypatch.setattr("sys.stdin", io.StringIO("t.stdin\n"))
        assert join(gateway, tmp_path / "b", "--again", token=flags) == 0
    tokens = [request.token for _, _, request in gateway.requests]
    assert tokens == ["t.file", "t.stdin", "t.stdin"]


def test_a_file_without_a_token_is_named(
    gateway: GatewayDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "token"
    path.write_text("\n")
    assert join(gateway, tmp_path / "a", token=("--token-file", str(path))) == 1
    assert f"{path}: no token in its first line" in capsys.readouterr().err
    assert gateway.requests == []


def test_a_node_with_other_gpus_than_it_declares_does_not_join(
    gateway: GatewayDouble,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = tuple(GpuReading(gpu=gpu, name="NVIDIA H100 80GB HBM3") for gpu in range(2))
    monkeypatch.setattr("berth_agent.linux.nvml.Nvml.readings", lambda self: listed)
    assert join(gateway, tmp_path / "state", "--gpus", "8", "--gpu-type", "h100") == 1
    assert "gpus: 8 declared, the driver lists 2; let the settings" in capsys.readouterr().err
    assert gateway.requests == []
    assert join(gateway, tmp_path / "state", "--gpus", "2", "--gpu-type", "h100") == 0


def test_an_identity_is_replaced_only_on_request(
    gateway: GatewayDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert join(gateway, tmp_path) == 0
    first = read_identity(str(tmp_path))
    assert join(gateway, tmp_path) == 1
    assert "--again replaces it" in capsys.readouterr().err
    assert join(gateway, tmp_path, "--again", "--executor", "https://other:1") == 0
    second = read_identity(str(tmp_path))
    assert second.secret != first.secret and second.executors == ("https://other:1",)


def test_a_join_that_got_no_answer_is_repeated_with_the_same_secret(
    gateway: GatewayDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that the control plane knows it, also where the token allows one node."""
    gateway.answers = False
    assert join(gateway, tmp_path) == 1
    assert "no_answer: 127.0.0.1:" in capsys.readouterr().err
    assert not (tmp_path / "identity.json").exists()
    assert stat.S_IMODE(os.stat(tmp_path / "joining.json").st_mode) == 0o600
    gateway.answers = True
    assert join(gateway, tmp_path) == 0
    first, second = (request.credential_sha256 for _, _, request in gateway.requests)
    secret = read_identity(str(tmp_path)).secret
    assert first == second == hashlib.sha256(secret.encode()).hexdigest()
    assert not (tmp_path / "joining.json").exists()


def test_a_join_under_another_name_has_another_secret(
    gateway: GatewayDouble, tmp_path: Path
) -> None:
    gateway.answers = False
    assert join(gateway, tmp_path) == join(gateway, tmp_path, "--node-id", "n2") == 1
    first, second = (request.credential_sha256 for _, _, request in gateway.requests)
    assert first != second


@pytest.mark.parametrize("other", ["boot", "token"])
def test_a_join_of_a_copied_disk_and_by_another_token_has_another_secret(
    gateway: GatewayDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    gateway.answers = False
    assert join(gateway, tmp_path) == 1
    if other == "boot":
        monkeypatch.setattr(identity, "read_boot_id", lambda: "another")
    token = "t.other" if other == "token" else "t.secret"
    assert join(gateway, tmp_path, token=("--token", token)) == 1
    first, second = (request.credential_sha256 for _, _, request in gateway.requests)
    assert first != second


def test_a_secret_that_was_revoked_before_its_answer_came_is_made_anew(
    gateway: GatewayDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers = False
    assert join(gateway, tmp_path) == 1
    gateway.answers, gateway.status, gateway.reason = True, 401, "credential_revoked"
    assert join(gateway, tmp_path) == 1
    assert "credential_revoked" in capsys.readouterr().err
    hashes = [request.credential_sha256 for _, _, request in gateway.requests]
    assert hashes[0] == hashes[1] != hashes[2] and len(hashes) == 3


def test_the_addresses_of_the_control_plane_are_changed(
    gateway: GatewayDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert join(gateway, tmp_path) == 0
    capsys.readouterr()
    flags = ("--state", str(tmp_path))
    assert main(["addresses", *flags]) == 0
    shown = f"gateway     {gateway.url}\nexecutor    https://executor.example:8443\n"
    assert capsys.readouterr().out == shown
    assert main(["addresses", "--gateway", "https://new.example:8443", *flags]) == 0
    identity = read_identity(str(tmp_path))
    assert identity.gateway == "https://new.example:8443" and not identity.has_own_executors
    words = ("--executor", "https://a:1", "--executor", "https://b:1")
    assert main(["addresses", *words, *flags]) == 0
    identity = read_identity(str(tmp_path))
    assert identity.executors == ("https://a:1", "https://b:1") and identity.has_own_executors
    assert main(["addresses", "--executor", "http://plain.example", *flags]) == 1
    assert read_identity(str(tmp_path)) == identity


def test_another_ca_of_the_control_plane_is_taken_without_a_token(
    gateway: GatewayDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert join(gateway, tmp_path) == 0
    make(tmp_path / "certificates")
    flags, path = ("--state", str(tmp_path)), tmp_path / "certificates" / "ca.crt"
    joined = read_identity(str(tmp_path))
    assert main(["addresses", "--ca", str(path), *flags]) == 0
    assert read_identity(str(tmp_path)) == replace(joined, ca=path.read_text())
    assert main(["addresses", "--ca", str(tmp_path / "identity.json"), *flags]) == 1
    assert "a PEM file of certificates is allowed" in capsys.readouterr().err


def test_a_refusal_is_one_line(
    gateway: GatewayDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.status = 403
    assert join(gateway, tmp_path) == 1
    printed = capsys.readouterr().err
    assert printed == "berth-agent: token_expired: token: expired; make another\n"
    assert not (tmp_path / "identity.json").exists()


def test_a_join_on_a_full_disk_names_the_file_and_the_remedy(
    gateway: GatewayDouble,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(descriptor: int, content: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", refuse)
    assert join(gateway, tmp_path) == 1
    monkeypatch.undo()
    printed = capsys.readouterr().err
    assert f"No space left on device: '{tmp_path}/" in printed
    assert printed.endswith("; make room on its disk, then run the command again\n")
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run"], "identity.json: missing; run `berth-agent join` first"),
        (["join", "http://example.org", "--token", "t"], "without TLS only a loopback"),
        (["--config", "/no/such/file", "run"], "No such file"),
    ],
)
def test_a_problem_is_one_line(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = ["--state", str(tmp_path / "state"), "--run", str(tmp_path / "run")]
    assert main([*arguments, *folders]) == 1
    printed = capsys.readouterr().err
    assert complaint in printed and printed.count("\n") == 1


def test_a_damaged_identity_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "identity.json").write_text('{"node_id": "n1"}')
    folders = ["--state", str(tmp_path), "--run", str(tmp_path / "run")]
    assert main(["run", *folders]) == 1
    assert "run `berth-agent join` again" in capsys.readouterr().err


def an_identity(gateway: GatewayDouble, expires_at: int) -> Identity:
    return Identity("n1", "gpu", "old", gateway.url, ("https://e:1",), expires_at, True, "")


def test_a_credential_is_renewed_ahead_of_its_end(gateway: GatewayDouble, tmp_path: Path) -> None:
    now_ms = 1_000 * DAY_MS
    identity = an_identity(gateway, now_ms + 6 * DAY_MS)
    issued_ms = now_ms - 84 * DAY_MS
    credentials = Credentials(str(tmp_path), replace(identity, issued_ms=issued_ms))
    assert not credentials.renew_if_due(now_ms - 5 * DAY_MS)
    assert credentials.renew_if_due(now_ms)
    [(endpoint, credential, request)] = gateway.requests
    renewed = read_identity(str(tmp_path))
    assert (endpoint, credential) == ("renew", "Bearer n1.old")
    assert request.credential_sha256 == hashlib.sha256(renewed.secret.encode()).hexdigest()
    assert credentials.access().credential == renewed.credential != "n1.old"


def test_a_renewal_without_an_answer_goes_on_with_the_same_secret(
    gateway: GatewayDouble, tmp_path: Path
) -> None:
    write_identity(str(tmp_path), an_identity(gateway, 0))
    credentials = Credentials(str(tmp_path), read_identity(str(tmp_path)))
    gateway.status = 503
    assert not credentials.renew_if_due(DAY_MS)
    pending = read_identity(str(tmp_path))
    assert pending.secret == "old" and pending.next_secret
    gateway.status = 200
    restarted = Credentials(str(tmp_path), pending)
    assert restarted.renew_if_due(DAY_MS)
    assert read_identity(str(tmp_path)).secret == pending.next_secret
    assert len({request.credential_sha256 for _, _, request in gateway.requests}) == 1


def test_a_node_that_joins_again_keeps_its_name_and_takes_work(
    gateway: GatewayDouble, tmp_path: Path
) -> None:
    assert join(gateway, tmp_path) == 0
    (tmp_path / "leave").write_text("drain")
    again = ["join", gateway.url, "--token", "t", "--state", str(tmp_path), "--again"]
    assert main(again) == 0
    assert read_identity(str(tmp_path)).node_id == "n1"
    assert not (tmp_path / "leave").exists()
    assert main([*again, "--node-id", "n2"]) == 0
    assert read_identity(str(tmp_path)).node_id == "n2"


@pytest.mark.parametrize("node_id", ["bad name!", "", "a-", "a" * 64])
def test_a_name_that_is_not_allowed_is_named(
    node_id: str, gateway: GatewayDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert join(gateway, tmp_path, "--node-id", node_id) == 1
    assert f"--node-id: {node_id!r}; 63 characters of a-z" in capsys.readouterr().err
    assert gateway.requests == []


def test_a_ca_that_is_no_certificate_is_named(
    gateway: GatewayDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ca.crt"
    for content in (b"no certificate", b"", b"\xff"):
        path.write_bytes(content)
        assert join(gateway, tmp_path / "state", "--ca", str(path)) == 1
        assert f"--ca: {path}; a PEM file of certificates" in capsys.readouterr().err


def test_a_url_without_a_gateway_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Double(Quiet)
    try:
        arguments = ["--token", "t", "--node-id", "n1", "--state", str(tmp_path)]
        assert main(["join", server.url, *arguments]) == 1
        complaint = f"{server.url} does not answer as a Berth gateway (HTTP 501)"
        assert capsys.readouterr().err == f"berth-agent: {complaint}\n"
        secure = server.url.replace("http:", "https:")
        assert main(["join", secure, *arguments]) == 1
        assert f"{secure} seems to answer without TLS" in capsys.readouterr().err
    finally:
        server.close()


def test_a_state_folder_without_an_identity_has_not_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        assert main(["status", "--state", str(folder), "--run", str(folder)]) == 3
        printed = capsys.readouterr().out
        assert printed == "this machine has not joined: run `berth-agent join`\n"
