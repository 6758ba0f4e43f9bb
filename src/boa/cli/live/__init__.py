"""Commands that run the service or talk to it."""
