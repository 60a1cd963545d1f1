"""What any part needs of the machine: child processes and folders."""
