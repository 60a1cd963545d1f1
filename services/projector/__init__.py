"""Folds all ledgers into the read models of Postgres."""
