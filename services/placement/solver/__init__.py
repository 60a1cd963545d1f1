"""The solver's own process, and how the service talks to it."""
