"""The solver's own process and its protocol."""
