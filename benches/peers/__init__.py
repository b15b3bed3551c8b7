"""One file per engine, all behind the interface of `benches.peers.peer`."""
