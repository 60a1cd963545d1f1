"""The compiled simulator: the rules of the live deciders as loops over arrays; see README.md."""
