"""What a table is: columns, properties, protocol, constraints, and how its values are spelled."""
