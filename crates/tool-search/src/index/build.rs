use super::{Facets, FieldWeights, Names, Posting, ToolIndex, weights::N_FIELDS};
use crate::{ToolDocument, text::Analyzer};

/// Maximum size of one text of a tool that is indexed, in bytes. The rest is ignored.
const MAX_TEXT: usize = 16 * 1024;

/// Collects the terms of all documents. Scores need the mean length of each field, so postings are made at the end.
pub(super) struct IndexBuilder {
    weights: FieldWeights,
    analyzer: Analyzer,
    entries: Vec<Entry>,
    /// End of each document's entries.
    ends: Vec<usize>,
    lengths: Vec<[u32; N_FIELDS]>,
    /// Terms of the present document, each with its field.
    scratch: Vec<(u32, u8)>,
    names: Names,
    facets: Facets,
}

/// Frequency of a term in a field of a document.
struct Entry {
    term: u32,
    frequency: u16,
    field: u8,
}

impl IndexBuilder {
    pub(super) fn new(weights: FieldWeights) -> Self {
        Self {
            weights,
            analyzer: Analyzer::default(),
            entries: Vec::new(),
            ends: Vec::new(),
            lengths: Vec::new(),
            scratch: Vec::new(),
            names: Names::default(),
            facets: Facets::default(),
        }
    }

    pub(super) fn add(&mut self, document: &ToolDocument) {
        self.scratch.clear();
        let server = document.server.as_deref().unwrap_or_default();
        let parameters = &document.parameters;
        self.add_field(0, [&*document.name, &document.title], true);
        self.add_field(1, document.aliases.iter().map(String::as_str), true);
        self.add_field(2, [&*document.description], false);
        self.add_field(3, parameters.iter().map(|parameter| &*parameter.name), false);
        self.add_field(
            4,
            parameters.iter().map(|parameter| &*parameter.description),
            false,
        );
        self.add_field(5, [server, &document.server_description], false);
        self.add_field(6, document.tags.iter().map(String::as_str), false);
        self.add_field(7, document.capabilities.iter().map(String::as_str), false);
        self.add_field(8, document.examples.iter().map(String::as_str), false);
        let mut lengths = [0; N_FIELDS];
        self.scratch.sort_unstable();
        for same in self.scratch.chunk_by(|a, b| a == b) {
            let (term, field) = same[0];
            lengths[usize::from(field)] += u32::try_from(same.len()).unwrap_or(u32::MAX);
            let frequency = u16::try_from(same.len()).unwrap_or(u16::MAX);
            self.entries.push(Entry {
                term,
                frequency,
                field,
            });
        }
        self.ends.push(self.entries.len());
        self.lengths.push(lengths);
        self.names.add(document);
        self.facets.add(document);
    }

    fn add_field<'a>(&mut self, field: u8, texts: impl IntoIterator<Item = &'a str>, keeps_stop_words: bool) {
        let Self {
            analyzer, scratch, ..
        } = self;
        for text in texts {
            let text = &text[..text.floor_char_boundary(MAX_TEXT)];
            analyzer.each_term(text, keeps_stop_words, |term| scratch.push((term, field)));
        }
    }

    pub(super) fn finish(mut self) -> ToolIndex {
        let means = mean_lengths(&self.lengths);
        let mut offsets = vec![0_u32; self.analyzer.n_terms() + 1];
        self.each_run(|_, run| offsets[run[0].term as usize + 1] += 1);
        for term in 1..offsets.len() {
            offsets[term] += offsets[term - 1];
        }
        let n_postings = offsets.last().copied().unwrap_or_default() as usize;
        let mut postings = vec![
            Posting {
                document: 0,
                impact: 0.0
            };
            n_postings
        ];
        let mut next = offsets.clone();
        let weights = self.weights.by_field();
        let FieldWeights { k1, b, .. } = self.weights;
        self.each_run(|document, run| {
            let lengths = &self.lengths[document];
            let weighted = run.iter().map(|entry| {
                let field = usize::from(entry.field);
                let length = lengths[field] as f32 / means[field];
                weights[field] * f32::from(entry.frequency) / (1.0 - b + b * length)
            });
            let frequency: f32 = weighted.sum();
            let slot = &mut next[run[0].term as usize];
            postings[*slot as usize] = Posting {
                document: u32::try_from(document).unwrap_or(u32::MAX),
                impact: frequency / (k1 + frequency),
            };
            *slot += 1;
        });
        self.analyzer.shrink();
        ToolIndex {
            analyzer: self.analyzer,
            offsets,
            postings,
            names: self.names.finish(),
            facets: self.facets,
        }
    }

    /// Passes the entries of each term of each document to a function, with the document.
    fn each_run(&self, mut receive: impl FnMut(usize, &[Entry])) {
        let mut start = 0;
        for (document, end) in self.ends.iter().enumerate() {
            for run in self.entries[start..*end].chunk_by(|a, b| a.term == b.term) {
                receive(document, run);
            }
            start = *end;
        }
    }
}

/// Returns the mean length of each field among the documents that have it.
fn mean_lengths(lengths: &[[u32; N_FIELDS]]) -> [f32; N_FIELDS] {
    std::array::from_fn(|field| {
        let present = lengths
            .iter()
            .map(|lengths| lengths[field])
            .filter(|length| *length > 0);
        let (n, sum) = present.fold((0_u64, 0_u64), |(n, sum), length| {
            (n + 1, sum + u64::from(length))
        });
        if n == 0 { 1.0 } else { sum as f32 / n as f32 }
    })
}
