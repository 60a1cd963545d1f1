"""The pure part of the executor: what the placement ledger means for its nodes."""
