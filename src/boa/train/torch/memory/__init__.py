"""Training state that goes from one run to the next through memory, beside the disk."""
