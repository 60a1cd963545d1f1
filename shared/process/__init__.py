"""Every process: its settings, its connection to the broker, its open files and its progress."""
