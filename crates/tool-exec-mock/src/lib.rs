//! Mock tools: a fixed result, or a template rendered from the arguments.
