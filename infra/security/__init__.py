"""Certificates, the users of Kafka and their rights, and the supply chain."""
