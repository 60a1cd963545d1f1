"""Parts of `berth bench schedulers`: published systems in one world, and what they gain."""
