"""Objects that services share: files of a folder, or of a bucket of S3."""
