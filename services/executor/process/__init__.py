"""Backend `process`: each worker is a process group."""
