//! Values that steps get: literals, references and expressions.

pub(crate) mod expression;
pub(crate) mod mapping;
pub(crate) mod reference;
pub(crate) mod scope;
