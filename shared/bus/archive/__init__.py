"""A topic on two tiers: the older records in an archive, the newer ones in Kafka."""
