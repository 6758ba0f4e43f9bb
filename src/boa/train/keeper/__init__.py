"""Training state that stays in a node's memory between two runs of a job."""
