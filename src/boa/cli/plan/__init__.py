"""Commands that plan and rent nothing."""
