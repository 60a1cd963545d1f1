"""Notes of an end, which a tenant may overwrite."""

from __future__ import annotations

from services.executor.core.engines.noted import parse_end


def test_a_note_of_an_end_is_read_and_what_a_tenant_writes_instead_is_none() -> None:
    end = parse_end(b"143 90 300 walltime\n")
    assert end is not None and (end.exit_code, end.ran_ms, end.ended_ms) == (143, 90, 300)
    assert end.reason == "walltime"
    other = parse_end(b"1 2 3 my_own_reason\n")
    assert other is not None and other.reason == ""
    for line in (b"", b"-1 2 3 \n", b"x", b"1 2", b"99999 1 1 \n", b"1 2 3 a b\n", b"\xff"):
        assert parse_end(line) is None
