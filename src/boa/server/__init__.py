"""The service over HTTP: REST, events, metrics."""
