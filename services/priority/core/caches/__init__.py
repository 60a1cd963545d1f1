"""Values kept from ranking to ranking; results are the same without them."""
