"""The leases of an executor: on its ledger, and on acknowledged heartbeats."""

from __future__ import annotations

from services.executor.virtual.lease import HeartbeatLease, ReadLease


def test_half_a_lease_without_reading_lapses_once() -> None:
    lease = ReadLease(0.0)
    assert not lease.check(5.0, lease_s=10.0)
    assert lease.check(5.1, lease_s=10.0) and lease.expired
    assert not lease.check(6.0, lease_s=10.0)


def test_reading_to_the_known_end_renews_the_lease_as_of_the_request() -> None:
    lease = ReadLease(0.0)
    lease.set_end(4.0, end=7)
    lease.read_to(6)
    assert lease.check(5.1, lease_s=10.0), "a record is missing"
    lease.read_to(7)
    assert not lease.expired and not lease.check(9.0, lease_s=10.0)
    assert lease.check(9.1, lease_s=10.0)


def test_a_deadline_counts_from_the_sending_not_from_the_acknowledgement() -> None:
    """[R1]"""
    lease = HeartbeatLease(0.0)
    lease.extend(0, sent_s=2.0, now_s=5.0, lease_s=10.0)
    assert not lease.has_passed(11.9, 10.0)
    assert lease.has_passed(12.0, 10.0)


def test_the_first_deadline_counts_from_the_registration() -> None:
    """[R3]"""
    assert HeartbeatLease(7.0).has_passed(17.0, 10.0)


def test_an_acknowledgement_after_the_deadline_extends_nothing() -> None:
    """[R2]"""
    lease = HeartbeatLease(0.0)
    lease.extend(0, sent_s=9.0, now_s=10.0, lease_s=10.0)
    assert lease.has_passed(10.0, 10.0)


def test_an_acknowledgement_of_older_incarnations_does_not_extend_the_lease_of_new_ones() -> None:
    lease = HeartbeatLease(0.0)
    lease.begin(4.0)
    lease.extend(0, sent_s=8.0, now_s=8.5, lease_s=10.0)
    assert lease.has_passed(14.0, 10.0)
    lease.begin(20.0)
    lease.extend(lease.epoch, sent_s=15.0, now_s=21.0, lease_s=10.0)
    assert lease.has_passed(30.0, 10.0) and not lease.has_passed(29.9, 10.0)
