"""The terms of single jobs: what they wait for, may take and cost, and by when they are due."""
