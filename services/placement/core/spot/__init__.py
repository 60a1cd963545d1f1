"""Places of guaranteed and spot gangs on nodes of whole GPUs, and the spot jobs that yield."""
