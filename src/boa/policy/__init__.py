"""Who gets which GPUs: the policies a cluster can be run by."""
