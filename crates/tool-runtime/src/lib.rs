//! The execution layers: deadlines and timeouts.
