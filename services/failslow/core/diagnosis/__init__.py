"""From slow groups to the cause, compute or communication, and to the GPU, node or link. Pure."""
