"""Packages: a folder as one file that is named by its content, packed, checked and unpacked."""
