"""What lies below `_esker/`: logs of refs, commits and their packs, and what garbage collections announce."""
