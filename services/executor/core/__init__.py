"""Pure: what an executor does about each fact of its pool's ledger."""
