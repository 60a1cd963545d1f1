"""The pure core of the notifier."""
