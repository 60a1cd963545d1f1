"""The CA of an installation, as a node trusts it: its certificate ends, and another one follows."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
MOST_EARLIER = 3
"""Certificates that are kept beside those that the control plane names: one that it names by
mistake cuts no node off."""
WARNED_MS = 30 * 24 * 3600 * 1000
"""Before the end of the last certificate, from when on it is a problem of the node."""
DAY_MS = 24 * 3600 * 1000


def context_of(pem: str) -> ssl.SSLContext:
    """Return the trust in these certificates. Raises ssl.SSLError, ValueError for other texts."""
    # An empty text would mean the CAs of the system.
    return ssl.create_default_context(cadata=pem or "-")


def read(path: str) -> str:
    """Return the PEM of the file. Raises OSError, ValueError."""
    try:
        pem = Path(path).read_text(encoding="ascii")
        context_of(pem)
    except (ssl.SSLError, ValueError):
        raise ValueError(f"--ca: {path}; a PEM file of certificates is allowed") from None
    return pem


def with_newer(pem: str, newer: str) -> str:
    """Return the certificates with those that the control plane names, these first.

    A node that trusts the system's CAs goes on so, and what is no certificate changes nothing.
    """
    if not pem or not newer:
        return pem
    try:
        context_of(newer)
    except (ssl.SSLError, ValueError):
        return pem
    present = CERTIFICATE.findall(pem)
    named = CERTIFICATE.findall(newer)
    if all(certificate in present for certificate in named):
        return pem
    earlier = [certificate for certificate in present if certificate not in named]
    kept = dict.fromkeys([*named, *earlier[:MOST_EARLIER]])
    return "".join(f"{certificate}\n" for certificate in kept)


def end_ms(context: ssl.SSLContext) -> int | None:
    """Return when the last of the certificates ends, ms since 1970; None without any."""
    ends = [str(one["notAfter"]) for one in context.get_ca_certs() if "notAfter" in one]
    return max((ssl.cert_time_to_seconds(end) * 1000 for end in ends), default=None)


def problem(end_ms: int | None, now_ms: int) -> str:
    """Return what to do about a CA that ends soon; empty if nothing is."""
    if end_ms is None or end_ms - now_ms > WARNED_MS:
        return ""
    left_d = (end_ms - now_ms) // DAY_MS
    when = f"ends in {left_d} days" if left_d >= 0 else "has ended"
    return f"the CA that this node trusts {when}; `berth-agent addresses --ca FILE` takes another"
