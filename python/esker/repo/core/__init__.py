"""One repository as its store holds it, and how it is created and opened."""
