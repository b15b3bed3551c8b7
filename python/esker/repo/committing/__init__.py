"""The way of a commit: staged, checked, merged onto the base, stored, and the ref moved."""
