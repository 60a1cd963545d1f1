"""Folds of a lane's ledger into its state, and snapshots of them."""
