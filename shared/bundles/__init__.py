"""Bundles of jobs: stored in a folder, or in a bucket of S3."""
