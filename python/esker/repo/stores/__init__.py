"""Stores over a branch: of a transaction, of the branch itself, of a ref."""
