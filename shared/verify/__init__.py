"""An independent fold of every ledger that checks the guarantees of Berth."""
