"""Side-by-side runs of esker and its peers: ``python -m benches``, see README.md."""
