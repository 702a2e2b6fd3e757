use tool_core::Pattern;
use tool_settings::Field;

/// Returns the items of a list; none if the list is absent or wrong.
pub(crate) fn items<T>(field: Field<Vec<Field<T>>>) -> impl Iterator<Item = Field<T>> {
    field.get().unwrap_or_default().into_iter()
}

/// Returns the usable items of a list as patterns.
pub(crate) fn patterns(field: Field<Vec<Field<String>>>) -> Vec<Pattern> {
    items(field).filter_map(Field::get).map(Pattern::new).collect()
}
