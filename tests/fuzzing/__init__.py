"""Random tables and what is done to them, beside the peers. A seed replays a case."""
