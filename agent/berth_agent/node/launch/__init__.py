"""The start of a worker: its image, its bundle, its environment, and its step."""
