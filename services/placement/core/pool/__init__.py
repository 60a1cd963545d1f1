"""The state of a pool, folded from events, and its free capacity."""
