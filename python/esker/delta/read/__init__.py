"""Reads one version: filters, scans, files, the change data feed."""
