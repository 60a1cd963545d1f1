"""From reports of watched jobs to suspicions, and to their end."""
