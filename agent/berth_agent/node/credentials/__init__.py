"""The identity of a node, its credential, and the executors that it may reach with it."""
