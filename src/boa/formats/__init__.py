"""Files that people write: workload, job, service, profile, plan."""
