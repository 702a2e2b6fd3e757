//! JSON that is made at run time: literals, references into other values, and expressions in CEL under a budget.
//!
//! A [`Mapping`] is JSON whose texts may be [references](ValueReference), and whose maps may be [expressions](Expression):
//!
//! | written | value |
//! |---|---|
//! | `"$input.topic"`, `"$results.search.urls[0]"`, `"$item"` | what the reference leads to in the [`MappingValues`] |
//! | `{"$cel": "size(input.items) > 3"}` | the value of the expression |
//! | `{"$literal": ..}` | what stands there, as it is |
//! | `"$$text"` | the text `$text` |
//! | anything else | itself |

mod expression;
mod mapping;
mod reference;
mod scope;

pub use raw_json::{self, RawJson};
pub use serde_json;
pub use tool_core::PrepareError;

pub use self::{
    expression::{Expression, ExpressionUses},
    mapping::{Mapping, MappingPart, Placed},
    reference::{PathSegment, ReferenceRoot, ValueReference},
    scope::{MappingValues, Results},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
