"""Changes of rows: deletes and updates, by new files or by deletion vectors."""
