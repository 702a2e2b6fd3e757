/// Parameters of BM25F. The defaults of `k1` and `b` are the usual ones of BM25; the weights of the fields were measured on
/// public benchmarks of tool retrieval, and climbing from them gained nothing on queries that were kept apart.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FieldWeights {
    /// Saturation of the frequency of a term.
    pub k1: f32,
    /// Strength of the normalization by the length of a field, from 0 to 1.
    pub b: f32,
    /// Weight of the name and the title.
    pub name: f32,
    /// Weight of aliases.
    pub alias: f32,
    /// Weight of the description.
    pub description: f32,
    /// Weight of the names of parameters.
    pub parameter: f32,
    /// Weight of the descriptions of parameters.
    pub parameter_description: f32,
    /// Weight of the server's name and description.
    pub server: f32,
    /// Weight of tags.
    pub tag: f32,
    /// Weight of capabilities.
    pub capability: f32,
    /// Weight of example queries.
    pub example: f32,
}

impl Default for FieldWeights {
    fn default() -> Self {
        Self {
            k1: 1.5,
            b: 0.75,
            name: 2.0,
            alias: 2.0,
            description: 1.0,
            parameter: 0.5,
            parameter_description: 0.3,
            server: 1.0,
            tag: 1.0,
            capability: 1.0,
            example: 1.0,
        }
    }
}

/// Number of fields.
pub(super) const N_FIELDS: usize = 9;

impl FieldWeights {
    /// Returns the weights in the order of the fields.
    pub(super) fn by_field(&self) -> [f32; N_FIELDS] {
        [
            self.name,
            self.alias,
            self.description,
            self.parameter,
            self.parameter_description,
            self.server,
            self.tag,
            self.capability,
            self.example,
        ]
    }
}
