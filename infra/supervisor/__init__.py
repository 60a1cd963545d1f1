"""The whole stack on one machine, without Docker."""
