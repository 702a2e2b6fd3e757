//! JSON text kept as it was written: checked, scanned, compared and spliced without a tree.
