"""Objects of a repository: what is known of them, their bytes, and what is staged of them."""
