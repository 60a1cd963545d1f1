"""One ranking of a pool: the order that acts, the health of policies, and shadows."""
