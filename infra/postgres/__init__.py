"""The embedded Postgres."""
