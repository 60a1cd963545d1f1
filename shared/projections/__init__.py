"""Read models: rows folded from ledgers, rebuilt at any time. No decider reads them."""
