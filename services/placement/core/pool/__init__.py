"""The pool: its state, and what each event does to it."""
