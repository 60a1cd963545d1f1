"""An identity provider on the loopback: real keys, a real HTTPS server, tokens of every kind."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from infra.security import certificates
from tests.serving import Quiet, serving

ISSUER, AUDIENCE = "https://idp.example", "berth"
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def new_rsa(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def new_ec(curve: ec.EllipticCurve | None = None) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve or ec.SECP256R1())


def public(key: Key, kid: str, **more: object) -> dict[str, object]:
    algorithm: Any = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig", **more}


@dataclass
class Provider:
    """`keys` are private and sign; `shown` are the public keys that the server returns."""

    keys: dict[str, Key] = field(default_factory=dict)
    shown: list[dict[str, object]] = field(default_factory=list)
    requests: int = 0
    status: int = 200
    url: str = ""

    def add(self, kid: str, key: Key, **more: object) -> None:
        self.keys[kid] = key
        self.shown.append(public(key, kid, **more))

    def token(
        self, kid: str = "r1", headers: dict[str, object] | None = None, **claims: Any
    ) -> str:
        """Return a valid token but for the given claims; a claim that is None is left out."""
        now = int(time.time())
        plain = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "grace",
            "iat": now,
            "nbf": now,
            "exp": now + 300,
            "tenant": "ada",
            "role": "submitter",
        }
        payload = {name: value for name, value in {**plain, **claims}.items() if value is not None}
        key = self.keys[kid]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(payload, key, algorithm, {"kid": kid, **(headers or {})})


@contextmanager
def provider(folder: Path) -> Iterator[Provider]:
    """Over TLS, with certificates of a CA of its own in `folder`, in a thread: a server in the
    test's own event loop may end with that before its clients have closed."""
    certificates.make(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "api.crt", folder / "api.key")
    made = Provider()
    made.add("r1", new_rsa())
    made.add("e1", new_ec())

    class Keys(Quiet):
        def do_GET(self) -> None:
            made.requests += 1
            self.answer(made.status, json.dumps({"keys": made.shown}).encode())

    server = HTTPServer(("127.0.0.1", 0), Keys)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server) as url:
        made.url = url.replace("http:", "https:") + "/keys"
        yield made
