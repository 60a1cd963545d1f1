"""A world of rounds for schedulers of types, sizes and shares: `shared/performance` is its physics.

The seam is `shared/schedulers`. Jobs have work in their own units, and start anew at a cost.
"""
