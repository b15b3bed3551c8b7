"""Rows and files of one version: filters, scans, the change data feed."""
