//! JSON Schemas of tools, compiled under budgets, and validation that never blocks a call.
