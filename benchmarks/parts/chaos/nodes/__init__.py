"""Faults of nodes with an agent: real workers, whose own notes show who held which GPU when."""
