"""Inputs on which a decider raises: found one by one, set aside within limits, decided again."""
