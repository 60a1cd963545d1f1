"""The client of Berth's REST API."""
