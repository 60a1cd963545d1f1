"""The quota of spot jobs from a forecast of guaranteed demand, and the success of guarantees."""
