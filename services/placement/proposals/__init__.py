"""The process in which a scheduler of a pool makes its proposals."""
