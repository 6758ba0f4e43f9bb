"""What rents and releases nodes."""
