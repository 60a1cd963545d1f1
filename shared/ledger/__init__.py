"""The ledger protocol as pure code: records, the reader rule, inputs, and what a decider is."""
