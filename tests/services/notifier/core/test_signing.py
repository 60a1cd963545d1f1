"""The signature is that of Standard Webhooks, by the example of its reference libraries."""

from __future__ import annotations

from services.notifier.core.signing import key_of, signature_headers

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'


def test_the_published_example() -> None:
    signed = signature_headers(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, BODY)
    assert signed == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_secret_of_another_form_is_its_own_key() -> None:
    assert key_of("plain text") == b"plain text"
    assert key_of("whsec_not base64") == b"whsec_not base64"
