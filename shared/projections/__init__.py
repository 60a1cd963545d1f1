"""Read models: rows folded from ledgers, dropped and rebuilt at will. Nothing decides on them."""
