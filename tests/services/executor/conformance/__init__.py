"""One suite for all backends: facts of the placement ledger go in, reports come out."""
