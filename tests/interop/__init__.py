"""Peers that are programs, not packages: `make interop` builds or fetches them and compares."""
