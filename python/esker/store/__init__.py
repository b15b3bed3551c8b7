"""Stores: which one a URI means, what is mounted in it, and what of its options a pickle carries."""
