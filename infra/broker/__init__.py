"""The brokers: the embedded one, Apache Kafka without Docker, and the topics on them."""
