"""Nodes of an inventory: virtual workers, which take time on the pool's time scale."""
