//! Which tools there are: sources, names, resolution into ready tools, snapshots.
