//! JSON whose members keep their order, with whatever features the program builds `serde_json`.

use raw_json::RawJson;

/// Writes an array.
pub(crate) fn array(items: &[RawJson]) -> RawJson {
    RawJson::from_serialize(items).expect("JSON can be written")
}
