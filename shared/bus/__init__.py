"""The ledger protocol and its hosts: the only way to read or write a Berth topic."""
