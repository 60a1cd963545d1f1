"""The containers of docker-compose.yml."""
