"""Renewals against the rules of access: no answer that is lost takes a node's identity from it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from berth_agent.linux import files
from berth_agent.node.credentials import renewal
from berth_agent.node.credentials.identity import Identity, read_identity, write_identity
from berth_agent.node.credentials.renewal import Credentials, renewed_ahead_ms
from infra.security.certificates import make
from services.access.core.enrolment import RENEWED_FOR_MS, renew
from services.access.core.outcomes import Denial
from shared.contracts.agents import RenewRequest
from shared.contracts.enrolment import NodeEnrolled, RenewNodeCredential
from shared.contracts.keys import hash_secret
from shared.contracts.node_registry import NodeRegistry, Refusal
from tests.serving import Double, Quiet

DAY_MS = 24 * 3600 * 1000
LIFE_MS = 90 * DAY_MS


class AccessDouble(Double):
    """A gateway with the registry and the decisions of access, and a clock of its own."""

    def __init__(self, hardware: str = "") -> None:
        self.now_ms = 0
        self.answers = True
        self.ca = ""
        self.registry = NodeRegistry()
        self.registry.apply(
            NodeEnrolled(
                node_id="n1",
                pool="gpu",
                credential_sha256=hash_secret("first"),
                approved=True,
                expires_at=LIFE_MS,
                hardware=hardware,
            )
        )
        double = self

        class Handler(Quiet):
            def do_POST(self) -> None:
                credential = self.headers["Authorization"].removeprefix("Bearer ")
                request = RenewRequest.model_validate_json(self.received())
                status, answer = double.renewed(credential, request)
                if not double.answers:
                    return
                self.answer(status, json.dumps(answer).encode())

        super().__init__(Handler)

    def renewed(self, credential: str, request: RenewRequest) -> tuple[int, dict[str, object]]:
        node = self.registry.authenticate(credential, self.now_ms)
        if isinstance(node, Refusal):
            return node.status, {"reason": node.reason, "detail": node.detail}
        command = RenewNodeCredential(
            node_id="n1",
            presented_sha256=hash_secret(credential.removeprefix("n1.")),
            credential_sha256=request.credential_sha256,
            hardware=request.hardware,
            former_hardware=request.former_hardware,
        )
        outcome = renew(self.registry, command, self.now_ms, self.now_ms + LIFE_MS)
        if isinstance(outcome, Denial):
            return 409, {"reason": outcome.reason, "detail": outcome.detail}
        if outcome.event is not None:
            self.registry.apply(outcome.event)
        joined = {"node_id": "n1", "pool": "gpu", "approved": True, "executors": []}
        return 200, {**joined, "expires_at": node.expires_at, "ca": self.ca}

    def knows(self, credential: str) -> bool:
        return not isinstance(self.registry.authenticate(credential, self.now_ms), Refusal)


@pytest.fixture
def access() -> Iterator[AccessDouble]:
    access = AccessDouble()
    yield access
    access.close()


@pytest.fixture
def agent(access: AccessDouble, tmp_path: Path) -> Callable[[], Credentials]:
    """Start an agent; each call is a restart, with what the folder holds."""
    identity = Identity("n1", "gpu", "first", access.url, ("https://e:1",), LIFE_MS, True, "")
    write_identity(str(tmp_path), identity)
    return lambda: Credentials(str(tmp_path), read_identity(str(tmp_path)))


def lose_the_answer(access: AccessDouble, credentials: Credentials) -> None:
    """Let a renewal be accepted without an answer, and the old secret become invalid."""
    access.now_ms = LIFE_MS - 6 * DAY_MS
    access.answers = False
    assert not credentials.renew_if_due(access.now_ms)
    access.answers = True
    access.now_ms += RENEWED_FOR_MS + 1
    assert not access.knows("n1.first")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_renewal_without_an_answer_for_long_is_confirmed(
    access: AccessDouble, agent: Callable[[], Credentials], restarts: bool, tmp_path: Path
) -> None:
    credentials = agent()
    lose_the_answer(access, credentials)
    if restarts:
        credentials = agent()
    assert credentials.renew_if_due(access.now_ms)
    assert access.knows(credentials.access().credential)
    kept = read_identity(str(tmp_path))
    assert (kept.credential, kept.next_secret) == (credentials.access().credential, "")
    assert kept.expires_at == access.registry.nodes["n1"].expires_at
    assert not credentials.renew_if_due(access.now_ms + 60_000)


def test_an_executor_gets_the_next_secret_while_the_gateway_is_away(
    access: AccessDouble, agent: Callable[[], Credentials]
) -> None:
    credentials = agent()
    lose_the_answer(access, credentials)
    credentials.note_refused(credentials.access().credential)
    assert access.knows(credentials.access().credential)
    credentials.note_refused(credentials.access().credential)
    assert credentials.access().credential == "n1.first", "there are two, each may be the right one"


def test_the_only_secret_of_a_node_is_presented_again(agent: Callable[[], Credentials]) -> None:
    credentials = agent()
    credentials.note_refused(credentials.access().credential)
    assert credentials.access().credential == "n1.first"


def test_an_identity_that_could_not_be_written_is_written_later(
    access: AccessDouble,
    agent: Callable[[], Credentials],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    credentials = agent()
    access.now_ms = LIFE_MS - 6 * DAY_MS
    written = [files.write_durable]

    def refuse_the_second(path: str, content: bytes, mode: int = 0o600) -> None:
        if not written:
            raise OSError(28, os.strerror(28))
        written.pop()(path, content, mode)

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_durable", refuse_the_second)
        assert not credentials.renew_if_due(access.now_ms)
    assert read_identity(str(tmp_path)).secret == "first"
    assert not credentials.renew_if_due(access.now_ms + 60_000)
    assert read_identity(str(tmp_path)).credential == credentials.access().credential
    assert access.knows(credentials.access().credential)


def test_nodes_that_joined_together_do_not_renew_together() -> None:
    ahead_ms = [renewed_ahead_ms(f"node-{number}", LIFE_MS) for number in range(1000)]
    assert min(ahead_ms) >= 7 * DAY_MS and max(ahead_ms) <= 10.5 * DAY_MS
    assert len(set(ahead_ms)) > 100
    assert 20_000 <= renewed_ahead_ms("n1", 60_000) <= 30_000


def test_a_clock_that_is_ahead_does_not_renew_again_and_again(
    access: AccessDouble, agent: Callable[[], Credentials], monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead_ms, credentials = 400 * DAY_MS, agent()
    assert credentials.renew_if_due(ahead_ms)
    assert not credentials.renew_if_due(ahead_ms + 60_000)
    assert credentials.problem == ""
    monkeypatch.setattr(renewal, "LEAST_S", 0.0)
    assert credentials.renew_if_due(ahead_ms + 120_000)


@pytest.mark.parametrize("issued_ms", [0, 1])
def test_a_node_that_is_switched_off_each_night_renews_in_time(
    access: AccessDouble, agent: Callable[[], Credentials], tmp_path: Path, issued_ms: int
) -> None:
    agent()
    joined = read_identity(str(tmp_path))
    write_identity(str(tmp_path), replace(joined, issued_ms=issued_ms))
    for hours_left in (13 * 24, 37, 13):
        access.now_ms = LIFE_MS - hours_left * DAY_MS // 24
        restarted = agent()
        is_renewed = restarted.renew_if_due(access.now_ms)
        if is_renewed:
            assert hours_left == 37, "not in the last night, and not a fortnight before"
            assert read_identity(str(tmp_path)).issued_ms == access.now_ms
            return
    pytest.fail("not renewed")


def test_addresses_that_an_executor_names_are_used_and_kept(
    agent: Callable[[], Credentials], tmp_path: Path
) -> None:
    credentials = agent()
    credentials.use_executors(("https://new:1", "http://plain.example:1", "nonsense"))
    assert credentials.access().urls == ("https://new:1",)
    credentials.use_executors(())
    credentials.use_executors(("nonsense",))
    assert credentials.access().urls == ("https://new:1",)
    assert not credentials.renew_if_due(0)
    assert read_identity(str(tmp_path)).executors == ("https://new:1",)
    assert agent().access().urls == ("https://new:1",)


def test_addresses_that_were_given_at_the_join_stay(
    agent: Callable[[], Credentials], tmp_path: Path
) -> None:
    identity = replace(read_identity(str(tmp_path)), has_own_executors=True)
    write_identity(str(tmp_path), identity)
    credentials = agent()
    credentials.use_executors(("https://new:1",))
    assert credentials.access().urls == ("https://e:1",)


def test_the_id_of_the_installation_that_an_executor_names_is_used_and_kept(
    agent: Callable[[], Credentials], tmp_path: Path
) -> None:
    credentials = agent()
    credentials.use_installation("")
    assert credentials.installation == "", "an older executor names none"
    credentials.use_installation("abc123")
    assert credentials.installation == "abc123"
    assert not credentials.renew_if_due(0)
    assert read_identity(str(tmp_path)).installation == "abc123"
    credentials = agent()
    credentials.use_installation("")
    assert credentials.installation == "abc123"


def test_a_renewal_brings_the_present_ca(
    access: AccessDouble, agent: Callable[[], Credentials], tmp_path: Path
) -> None:
    older, newer = (make_ca(tmp_path / name, days) for name, days in (("a", 715), ("b", 0)))
    write_identity(str(tmp_path), replace(read_identity(str(tmp_path)), ca=older))
    credentials = agent()
    assert "the CA that this node trusts ends in 14 days" in credentials.problem
    access.ca = newer
    assert credentials.renew_if_due(LIFE_MS - 6 * DAY_MS)
    assert credentials.problem == ""
    assert len(credentials.access().tls.get_ca_certs()) == 2
    kept = read_identity(str(tmp_path)).ca
    assert kept.startswith(newer.strip()) and older.strip() in kept


def make_ca(folder: Path, days_ago: int) -> str:
    """Return the certificate of a CA that was made so many days ago."""
    made_at = datetime.now(UTC) - timedelta(days=days_ago)  # noqa: TID251
    make(folder, now=made_at)
    return (folder / "ca.crt").read_text()


@pytest.mark.parametrize(
    ("machine", "renewed"), [(("hw", "older"), True), (("new", "hw"), True), (("copy",), False)]
)
def test_a_copied_disk_does_not_renew_the_identity_of_its_origin(
    tmp_path: Path, machine: tuple[str, ...], renewed: bool
) -> None:
    access = AccessDouble("hw")
    identity = Identity("n1", "gpu", "first", access.url, ("https://e:1",), LIFE_MS, True, "")
    credentials = Credentials(str(tmp_path), identity, lambda: machine)
    try:
        assert credentials.renew_if_due(LIFE_MS - 6 * DAY_MS) is renewed
    finally:
        access.close()
    assert access.knows("n1.first")
    reason = "machine_changed: node_id: 'n1': enrolled on another machine"
    assert (reason in credentials.problem) is not renewed
