"""Effects of the placement ledger on the virtual workers of an inventory."""
