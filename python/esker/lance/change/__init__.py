"""Changes: rows and columns that come, go and change, staged for one commit."""
