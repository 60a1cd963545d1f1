"""Measures of slowness that need no state: among peers, by history, and how strictly they count."""
