"""The ledger, pacing, and views of both."""
