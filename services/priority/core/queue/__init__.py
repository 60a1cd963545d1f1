"""The jobs of a pool as columns and arrays, and their places in the order."""
