"""The definition of a table: schema, properties, protocol, constraints, and how partition values are spelled."""
