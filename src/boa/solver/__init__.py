"""Budget-optimal plans: see README.md in this folder for the pipeline and its words."""
