"""The pure part of the executor: effects of each fact of its pool's ledger."""
