"""Shapes of everything that goes over the wire: server and client have them from here."""
