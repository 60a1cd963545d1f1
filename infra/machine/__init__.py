"""Child processes and directories, shared by all parts."""
