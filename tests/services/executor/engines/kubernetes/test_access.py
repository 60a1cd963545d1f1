"""Credentials of a kubeconfig; a token that is in a file is read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.security.certificates import make
from services.executor.engines.kubernetes.access import access_of, renewed
from shared.process.settings import BadSettings


def kubeconfig(folder: Path, user: dict[str, Any], server: str = "http://127.0.0.1:1/") -> Path:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    return path


def test_a_token_is_that_of_the_file_at_each_request(tmp_path: Path) -> None:
    access = access_of(kubeconfig(tmp_path, {"tokenFile": "token"}))
    (tmp_path / "token").write_text("one\n")
    assert (access.server, access.bearer()) == ("http://127.0.0.1:1", "one")
    (tmp_path / "token").write_text("two\n")
    assert access.bearer() == "two"
    assert access_of(kubeconfig(tmp_path, {"token": "t"})).bearer() == "t"


def test_what_cannot_be_used_is_refused_with_the_setting(tmp_path: Path) -> None:
    program = kubeconfig(tmp_path, {"exec": {"command": "login"}})
    with pytest.raises(BadSettings, match="a token or a certificate is needed"):
        access_of(program)
    with pytest.raises(BadSettings, match="BERTH_KUBERNETES_CONFIG"):
        access_of(tmp_path / "absent")
    (tmp_path / "empty").write_text("{}")
    with pytest.raises(BadSettings, match="BERTH_KUBERNETES_CONFIG"):
        access_of(tmp_path / "empty")


def test_outside_of_a_pod_a_kubeconfig_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(BadSettings, match="needed outside of a pod"):
        access_of(None)


def test_credentials_that_are_replaced_are_read_anew(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, {"token": "one"}, "https://127.0.0.1:1")
    text = config.read_text().replace("server:", "certificate-authority: ca.crt\n    server:")
    config.write_text(text)
    make(tmp_path)
    access = access_of(config)
    assert renewed(access) is access
    make(tmp_path / "anew")
    (tmp_path / "anew" / "ca.crt").rename(tmp_path / "ca.crt")
    anew = renewed(access)
    assert anew.tls is not access.tls and renewed(anew) is anew
    config.write_text(text.replace("one", "the next one"))
    assert renewed(anew).bearer() == "the next one"


def test_credentials_in_the_middle_of_a_replacement_stay_as_they_are(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, {"token": "one"})
    access = access_of(config)
    config.write_text("{half")
    assert renewed(access) is access
    kubeconfig(tmp_path, {"token": "the next one"})
    assert renewed(access).bearer() == "the next one"
