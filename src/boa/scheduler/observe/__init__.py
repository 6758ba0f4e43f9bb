"""Acts of users, runs, nodes and the cloud, taken into the draft."""
