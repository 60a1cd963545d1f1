"""One file per system; a class with a `name` is a scheduler of that name."""
