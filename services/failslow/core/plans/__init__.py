"""Plans against a suspected fault: made, applied, tried again, and judged at their end."""
