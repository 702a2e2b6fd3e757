//! Manifests and configuration files: every accepted spelling, read into descriptors with errors that show the line.
