"""What users, runs, nodes and the cloud did, taken into the draft."""
