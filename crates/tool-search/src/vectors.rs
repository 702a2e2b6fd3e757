//! Search by meaning: vectors of texts, and their fusion with the scores of words.

use std::sync::Arc;

/// Share of the words' score, relative to the best one, in the fused score. The rest is the cosine. Chosen on development
/// queries; reciprocal rank fusion is one point of nDCG worse, and learned fusion as well.
const LEXICAL: f32 = 0.3;

/// Minimum cosine of the best tool if too few words of the query occur in it.
pub(crate) const MIN_COSINE: f32 = 0.35;

/// Vectors of the tools of one index, by their position. Tools may lack one. The vectors are shared with those who gave them.
#[derive(Debug, Clone, Default)]
pub struct ToolVectors {
    n_dimensions: usize,
    by_tool: Vec<Option<Arc<[f32]>>>,
}

impl ToolVectors {
    /// Collects the vectors of tools, in the order of the index. A vector whose length differs from that of the first one
    /// counts as missing.
    #[must_use]
    pub fn new(vectors: impl IntoIterator<Item = Option<Arc<[f32]>>>) -> Self {
        let mut by_tool: Vec<_> = vectors.into_iter().collect();
        let first = by_tool.iter().flatten().next();
        let n_dimensions = first.map_or(0, |vector| vector.len());
        for slot in &mut by_tool {
            slot.take_if(|vector| vector.len() != n_dimensions);
        }
        Self {
            n_dimensions,
            by_tool,
        }
    }

    /// Returns the number of tools without a vector.
    #[must_use]
    pub fn n_missing(&self) -> usize {
        self.by_tool.iter().filter(|vector| vector.is_none()).count()
    }
}

/// Scores of words and vectors together.
pub(crate) struct FusedScores {
    scores: Vec<f32>,
    cosines: Vec<f32>,
}

/// Fuses the scores of words with the cosines of vectors. Returns `None` if the query's vector does not fit. The best score,
/// which the others are relative to, is that of a tool that can be found.
pub(crate) fn fuse(
    tools: &ToolVectors,
    query: &[f32],
    lexical: &[f32],
    admits: &dyn Fn(usize) -> bool,
) -> Option<FusedScores> {
    let fits = tools.n_dimensions > 0
        && query.len() == tools.n_dimensions
        && tools.by_tool.len() == lexical.len()
        && query.iter().all(|component| component.is_finite());
    if !fits {
        return None;
    }
    let vectors = tools.by_tool.iter();
    let cosine = |vector: &Option<Arc<[f32]>>| vector.as_ref().map_or(0.0, |vector| dot(vector, query));
    let cosines: Vec<f32> = vectors.map(cosine).collect();
    let best = lexical.iter().enumerate().fold(0.0, |best, (document, score)| {
        match *score > best && admits(document) {
            true => *score,
            false => best,
        }
    });
    let scale = if best > 0.0 { LEXICAL / best } else { 0.0 };
    let scores = lexical
        .iter()
        .zip(&cosines)
        .map(|(lexical, cosine)| scale * lexical + (1.0 - LEXICAL) * cosine);
    Some(FusedScores {
        scores: scores.collect(),
        cosines,
    })
}

impl FusedScores {
    pub(crate) fn cosine(&self, document: u32) -> f32 {
        self.cosines[document as usize]
    }

    pub(crate) fn candidates(&self) -> Vec<(u32, f32)> {
        let scores = self.scores.iter().enumerate().filter(|(_, score)| **score > 0.0);
        scores
            .filter_map(|(document, score)| Some((u32::try_from(document).ok()?, *score)))
            .collect()
    }
}

/// Returns the scalar product. Eight sums side by side, which the compiler turns into vector instructions.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0_f32; 8];
    for (a, b) in a.zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}
