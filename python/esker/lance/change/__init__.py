"""Changes of a table: delete and update of rows; add, alter and drop of columns. Each is staged, then committed."""
