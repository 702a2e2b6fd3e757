//! Earlier calls by the meaning of their texts.

use std::{collections::HashMap, fmt, sync::Arc};

use super::wording::Wording;
use crate::{cache::response_cache::CacheKey, sync::Mutex};

/// Maximum memory for earlier calls, in bytes. Beyond it, the older half of them is forgotten.
const MAX_BYTES: usize = 32 << 20;
/// Maximum number of earlier calls that a request is compared with. Beyond it, the oldest is forgotten.
const MAX_COMPARED: usize = 2_000;
/// Approximate size of a call without its texts and vectors, in bytes.
const OVERHEAD: usize = 512;

/// Text of a call, as it is compared.
#[derive(Clone)]
pub(crate) struct Meaning {
    pub(super) wording: Wording,
    /// Vector of length 1.
    pub(super) vector: Arc<[f32]>,
}

/// Call with texts that are compared by meaning.
#[derive(Clone)]
pub(crate) struct Request {
    /// Everything that must be equal: the key of the call without those texts, and with the name of the model.
    pub(super) group: CacheKey,
    /// Meanings of the texts, in the order of the settings.
    pub(super) meanings: Arc<[Meaning]>,
}

/// Result of a search for an earlier call that means the same.
pub(crate) enum Nearest<T> {
    /// There is no earlier call with the same other arguments.
    Nothing,
    /// The nearest call that means the same.
    Found { call: T, cosine: f32 },
    /// No call means the same. The nearest one has this cosine, and other words if that is sufficient.
    TooFar { cosine: f32, has_other_words: bool },
}

/// Earlier calls whose results were cached.
#[derive(Default)]
pub(crate) struct SemanticIndex(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    groups: HashMap<CacheKey, Vec<EarlierCall>>,
    n_bytes: usize,
    next_number: u64,
}

struct EarlierCall {
    key: CacheKey,
    meanings: Arc<[Meaning]>,
    /// Greater than those of all calls before.
    number: u64,
}

impl SemanticIndex {
    /// Adds a call whose result was cached under this key.
    pub(crate) fn add(&self, request: &Request, key: CacheKey) {
        self.0.lock().add(request, key);
    }

    /// Finds the nearest call that means the same as a request, and for which `cached` returns something.
    pub(crate) fn nearest<T>(
        &self,
        request: &Request,
        threshold: f32,
        cached: impl Fn(&CacheKey) -> Option<T>,
    ) -> Nearest<T> {
        let calls = self.0.lock();
        let group = calls.groups.get(&request.group).map_or(&[][..], Vec::as_slice);
        let (mut best, mut found) = (None, None);
        for call in group {
            let cosine = cosine(&call.meanings, &request.meanings);
            if best.is_none_or(|best| cosine > best) {
                best = Some(cosine);
            }
            let is_nearer = found.as_ref().is_none_or(|(_, found)| cosine > *found);
            if is_nearer
                && cosine >= threshold
                && agree(&call.meanings, &request.meanings)
                && let Some(call) = cached(&call.key)
            {
                found = Some((call, cosine));
            }
        }
        match (found, best) {
            (Some((call, cosine)), _) => Nearest::Found { call, cosine },
            (None, Some(cosine)) => Nearest::TooFar {
                cosine,
                has_other_words: cosine >= threshold,
            },
            (None, None) => Nearest::Nothing,
        }
    }
}

impl Calls {
    fn add(&mut self, request: &Request, key: CacheKey) {
        self.next_number += 1;
        let number = self.next_number;
        let group = self.groups.entry(request.group.clone()).or_default();
        if let Some(known) = group.iter_mut().find(|call| call.key == key) {
            known.number = number;
            return;
        }
        if group.len() >= MAX_COMPARED
            && let Some(oldest) = (0..group.len()).min_by_key(|place| group[*place].number)
        {
            self.n_bytes -= group.swap_remove(oldest).n_bytes();
        }
        let call = EarlierCall {
            key,
            meanings: request.meanings.clone(),
            number,
        };
        self.n_bytes += call.n_bytes();
        group.push(call);
        if self.n_bytes > MAX_BYTES {
            self.forget_older_half();
        }
    }

    fn forget_older_half(&mut self) {
        let mut numbers: Vec<u64> = self.groups.values().flatten().map(|call| call.number).collect();
        numbers.sort_unstable();
        let first = numbers[numbers.len() / 2];
        self.groups.retain(|_, group| {
            group.retain(|call| call.number >= first);
            !group.is_empty()
        });
        self.n_bytes = self.groups.values().flatten().map(EarlierCall::n_bytes).sum();
    }
}

impl EarlierCall {
    fn n_bytes(&self) -> usize {
        let meanings = self.meanings.iter();
        let size = meanings.map(|meaning| meaning.wording.n_bytes() + size_of_val(&*meaning.vector));
        OVERHEAD + size.sum::<usize>()
    }
}

/// Returns the least cosine of the texts of two calls, which have equally many.
fn cosine(ours: &[Meaning], theirs: &[Meaning]) -> f32 {
    let cosines = ours
        .iter()
        .zip(theirs)
        .map(|(ours, theirs)| dot(&ours.vector, &theirs.vector));
    cosines.fold(1.0, f32::min)
}

fn agree(ours: &[Meaning], theirs: &[Meaning]) -> bool {
    let mut pairs = ours.iter().zip(theirs);
    pairs.all(|(ours, theirs)| ours.wording.agrees_with(&theirs.wording))
}

/// Returns the scalar product of vectors of one length, and 0 for others. Eight sums side by side, which the compiler turns into
/// vector instructions.
fn dot(ours: &[f32], theirs: &[f32]) -> f32 {
    if ours.len() != theirs.len() {
        return 0.0;
    }
    let mut sums = [0.0_f32; 8];
    for (ours, theirs) in ours.chunks(8).zip(theirs.chunks(8)) {
        for (sum, (ours, theirs)) in sums.iter_mut().zip(ours.iter().zip(theirs)) {
            *sum += ours * theirs;
        }
    }
    sums.iter().sum()
}

impl fmt::Debug for SemanticIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.0.lock();
        write!(
            f,
            "{} groups of calls, {} bytes",
            calls.groups.len(),
            calls.n_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use tool_core::{Arguments, Reply, Tool, ToolError, invoke_fn};
    use tool_core::{CallContext, serde_json::json};

    use super::*;
    use crate::CacheScope;

    /// Keys that differ in their arguments.
    fn keys(n: u32) -> impl Iterator<Item = CacheKey> {
        let run = invoke_fn(|_: Arc<Arguments>| async { Ok::<_, ToolError>(Reply::from(json!(1))) });
        let cx = CallContext::local(&Tool::builder("ask").run(run), Arguments::none());
        let key = CacheKey::for_call(&cx, CacheScope::Principal);
        (0..n).map(move |number| {
            let mut digest = [0; 32];
            digest[..4].copy_from_slice(&number.to_le_bytes());
            key.with_arguments(digest)
        })
    }

    fn request(group: &CacheKey, n_dimensions: usize) -> Request {
        let mut vector = vec![0.0; n_dimensions];
        vector[0] = 1.0;
        let meaning = Meaning {
            wording: Wording::of("weather in Oslo"),
            vector: vector.into(),
        };
        Request {
            group: group.clone(),
            meanings: [meaning].into(),
        }
    }

    /// Keys of the calls of a group, oldest first.
    fn known(index: &SemanticIndex, group: &CacheKey) -> Vec<CacheKey> {
        let calls = index.0.lock();
        let mut group: Vec<_> = calls.groups.get(group).into_iter().flatten().collect();
        group.sort_by_key(|call| call.number);
        group.into_iter().map(|call| call.key.clone()).collect()
    }

    #[test]
    fn a_group_forgets_its_oldest_call_and_a_call_that_is_added_again_is_the_newest() {
        let index = SemanticIndex::default();
        let keys: Vec<_> = keys(2_001).collect();
        let request = request(&keys[0], 2);
        for key in &keys[..2_000] {
            index.add(&request, key.clone());
        }
        index.add(&request, keys[0].clone());
        index.add(&request, keys[2_000].clone());
        let known = known(&index, &keys[0]);
        assert_eq!(known.len(), 2_000);
        assert!(known[0] == keys[2] && known[1_998] == keys[0] && known[1_999] == keys[2_000]);
    }

    #[test]
    fn beyond_its_memory_the_index_forgets_the_older_half_of_all_groups() {
        let index = SemanticIndex::default();
        let keys: Vec<_> = keys(9).collect();
        // 4 MiB each.
        for key in &keys {
            index.add(&request(key, 1 << 20), key.clone());
        }
        let left: Vec<bool> = keys.iter().map(|key| !known(&index, key).is_empty()).collect();
        assert_eq!(left, [false, false, false, false, true, true, true, true, true]);
        assert!((20 << 20..24 << 20).contains(&index.0.lock().n_bytes));
    }
}
