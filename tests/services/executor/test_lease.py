"""The lease of an executor on its ledger."""

from __future__ import annotations

from services.executor.lease import ReadLease


def test_half_a_lease_without_reading_lapses_once() -> None:
    lease = ReadLease(0.0)
    assert not lease.check(5.0, lease_s=10.0)
    assert lease.check(5.1, lease_s=10.0) and lease.lapsed
    assert not lease.check(6.0, lease_s=10.0)


def test_reading_to_the_known_end_renews_the_lease_as_of_the_request() -> None:
    lease = ReadLease(0.0)
    lease.set_end(4.0, end=7)
    lease.read_to(6)
    assert lease.check(5.1, lease_s=10.0), "a record is missing"
    lease.read_to(7)
    assert not lease.lapsed and not lease.check(9.0, lease_s=10.0)
    assert lease.check(9.1, lease_s=10.0)
