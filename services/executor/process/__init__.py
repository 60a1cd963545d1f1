"""Backend `process`: each worker a real process group of its own."""
