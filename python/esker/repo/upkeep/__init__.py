"""What keeps a repository well: retention, garbage collection, checks, packs and dumps of refs."""
