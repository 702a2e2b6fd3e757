//! Search by meaning: vectors of tools in the background, vectors of queries within a time limit.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use tool_core::Embedder;
use tool_registry::Snapshot;
use tool_search::{SearchRequest, ToolVectors};

use super::catalogue::{Catalogue, document};
use crate::{Toolplane, View};

/// Time limit for the vectors of a search's queries. Then the search is made by words alone.
const QUERY_LIMIT: Duration = Duration::from_secs(2);

impl Toolplane {
    /// Returns the vectors of a request's queries, if there is an embedder and the tools have vectors. Otherwise adds the reason
    /// to the warnings, and has the vectors of the tools computed in the background.
    pub(super) async fn query_vectors(
        &self,
        catalogue: &Arc<Catalogue>,
        (snapshot, view): (&Arc<Snapshot>, &View),
        request: &SearchRequest,
        warnings: &mut Vec<String>,
    ) -> Option<Vec<Vec<f32>>> {
        let embedder = self.0.discovery.embedder()?;
        if request.queries().is_empty() {
            return None;
        }
        if !self.has_vectors(catalogue, view, &*embedder) {
            let problem = catalogue.problem.lock().clone();
            self.embed_tools(catalogue, snapshot, view);
            warnings.push(match problem {
                Some(problem) => format!("searched by words alone: the tools cannot be embedded: {problem}"),
                None => "searched by words alone: the tools are not embedded yet".to_owned(),
            });
            return None;
        }
        let problem = match timeout(QUERY_LIMIT, embedder.embed(request.queries())).await {
            Ok(Ok(vectors)) if vectors.len() == request.queries().len() => return Some(vectors),
            Ok(Ok(vectors)) => format!(
                "the embedder returned {} vectors for {} queries",
                vectors.len(),
                request.queries().len()
            ),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the embedder did not answer within {QUERY_LIMIT:?}"),
        };
        warnings.push(format!("searched by words alone: {problem}"));
        None
    }

    /// Returns `true` if the tools of a catalogue have vectors. Takes those that were computed for other views.
    fn has_vectors(&self, catalogue: &Catalogue, view: &View, embedder: &dyn Embedder) -> bool {
        if catalogue.vectors.get().is_some() {
            return true;
        }
        let digests = view.tools().iter().map(|tool| tool.digest());
        let known = self.0.discovery.vectors.all_of(embedder.model(), digests);
        known.is_some_and(|known| {
            catalogue
                .vectors
                .get_or_init(|| ToolVectors::new(known.into_iter().map(Some)));
            true
        })
    }

    /// Computes the vectors of all tools of a snapshot in the background, unless that is under way for this catalogue.
    fn embed_tools(&self, catalogue: &Arc<Catalogue>, snapshot: &Arc<Snapshot>, view: &View) {
        let discovery = &self.0.discovery;
        let Some(embedder) = discovery.embedder().filter(|_| catalogue.begin_embedding()) else {
            return;
        };
        let (vectors, turn) = (discovery.vectors.clone(), discovery.embedding.clone());
        let (catalogue, snapshot, view) = (catalogue.clone(), snapshot.clone(), view.clone());
        self.0.background.spawn(async move {
            // One at a time: the tools of several views are mostly the same.
            let _turn = turn.lock().await;
            let tools = snapshot.tools();
            let texts: Vec<_> = tools
                .iter()
                .map(|tool| (*tool.digest(), document(tool).text()))
                .collect();
            let filled = vectors.fill(&*embedder, texts).await;
            catalogue.end_embedding(match filled {
                Ok(()) => {
                    let used: std::collections::HashSet<_> =
                        tools.iter().map(|tool| *tool.digest()).collect();
                    vectors.retain(|digest| used.contains(digest));
                    let seen = view.tools().iter();
                    Ok(ToolVectors::new(seen.map(|tool| vectors.get(tool.digest()))))
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to embed the tools: they are searched by words alone");
                    Err(error.to_string())
                }
            });
        });
    }
}
