//! The inverted index and its construction.

mod build;
mod facets;
mod names;
mod weights;

pub use self::weights::FieldWeights;
pub(crate) use self::{facets::Facets, names::Names};

use std::{sync::Arc, time::Duration};

use crate::{
    ToolDocument,
    text::{Analyzer, QueryTerms},
};

/// Inverted index of tools, ranked by BM25F: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
/// Beyond", 2009, section 3.6. Immutable: a changed set of tools gets a new index.
///
/// A tool is identified by its position among the documents. Of results with equal scores, the one with the lower
/// position is first.
#[derive(Debug)]
pub struct ToolIndex {
    pub(crate) analyzer: Analyzer,
    /// Start of each term's postings; one more than there are terms.
    offsets: Vec<u32>,
    postings: Vec<Posting>,
    pub(crate) names: Names,
    pub(crate) facets: Facets,
}

/// Occurrence of a term in a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) document: u32,
    /// Saturated weight of the term in the document, from 0 to 1: only the factor for the query is missing.
    pub(crate) impact: f32,
}

/// Term of a query with its weight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WeightedTerm {
    pub(crate) term: u32,
    pub(crate) weight: f32,
}

impl ToolIndex {
    /// Builds the index of these tools with the default weights.
    ///
    /// # Examples
    /// ```
    /// use tool_search::{SearchRequest, SearchScope, ToolDocument, ToolIndex};
    ///
    /// let index = ToolIndex::build([ToolDocument::new("get_weather"), ToolDocument::new("send_mail")]);
    /// let results = index.search(&SearchRequest::new("weather in Oslo"), &SearchScope::default());
    /// assert_eq!(&**index.name(results.hits[0].document), "get_weather");
    /// ```
    #[must_use]
    pub fn build(documents: impl IntoIterator<Item = ToolDocument>) -> Self {
        Self::build_with(documents, &FieldWeights::default())
    }

    /// Builds the index of these tools.
    #[must_use]
    pub fn build_with(documents: impl IntoIterator<Item = ToolDocument>, weights: &FieldWeights) -> Self {
        let mut builder = build::IndexBuilder::new(weights.clone());
        for document in documents {
            builder.add(&document);
        }
        builder.finish()
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns `true` if there are no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of distinct terms.
    #[must_use]
    pub fn n_terms(&self) -> usize {
        self.analyzer.n_terms()
    }

    /// Returns the name of the tool at this position.
    ///
    /// # Panics
    /// If there are fewer tools.
    #[must_use]
    pub fn name(&self, document: usize) -> &Arc<str> {
        self.names.name(document)
    }

    /// Returns the approximate size in memory, in bytes, without the names that it shares with its documents.
    #[must_use]
    pub fn size(&self) -> usize {
        self.analyzer.size()
            + self.offsets.capacity() * size_of::<u32>()
            + self.postings.capacity() * size_of::<Posting>()
            + self.names.size()
            + self.facets.size()
    }

    pub(crate) fn postings(&self, term: u32) -> &[Posting] {
        let term = term as usize;
        &self.postings[self.offsets[term] as usize..self.offsets[term + 1] as usize]
    }

    /// Returns the inverse document frequency of a term that occurs in this number of documents.
    pub(crate) fn inverse_frequency(&self, n_documents: usize) -> f32 {
        let (n, df) = (self.len() as f64, n_documents as f64);
        ((n - df + 0.5) / (df + 0.5)).ln_1p() as f32
    }

    /// Returns the weights of a query's known terms, and the sum of all weights: the score of a tool in which each term of
    /// the query were as frequent as can be.
    pub(crate) fn weigh(&self, query: &QueryTerms) -> (Vec<WeightedTerm>, f32) {
        let known = query.known.iter().map(|&term| WeightedTerm {
            term,
            weight: self.inverse_frequency(self.postings(term).len()),
        });
        let known: Vec<_> = known.collect();
        let of_known: f32 = known.iter().map(|term| term.weight).sum();
        (
            known,
            of_known + query.unknown.len() as f32 * self.inverse_frequency(0),
        )
    }

    /// Returns the declared share of successful calls of a tool, in percent.
    pub(crate) fn sla(&self, document: usize) -> Option<f64> {
        self.facets.sla(document)
    }

    /// Returns the declared latency of a tool.
    pub(crate) fn latency(&self, document: usize) -> Option<Duration> {
        self.facets.latency(document)
    }
}
