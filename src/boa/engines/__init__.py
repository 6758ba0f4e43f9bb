"""What starts, rescales and stops jobs for real."""
