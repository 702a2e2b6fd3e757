//! One governed set of tools for agents.
