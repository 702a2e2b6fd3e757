use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
use mcp_wire::MirroredParams;
use parking_lot::RwLock;
use toolplane::core::Tool;

/// Cache of the arguments that clients mirror in headers, by the digest of their tool. Each definition is read once.
///
/// A fast hash is safe, since digests are as good as random.
#[derive(Debug, Default)]
pub(crate) struct MirroredParamsCache(RwLock<HashMap<[u8; 32], Option<Arc<MirroredParams>>, RandomState>>);

/// Maximum number of entries. A full cache is cleared.
const MAX_ENTRIES: usize = 4096;

impl MirroredParamsCache {
    /// Returns the mirrored arguments of a tool, or `None` if it has none.
    pub(crate) fn get(&self, tool: &Tool) -> Option<Arc<MirroredParams>> {
        let digest = tool.digest();
        {
            let known = self.0.read();
            if let Some(mirrored) = known.get(digest) {
                return mirrored.clone();
            }
        }
        let mirrored = MirroredParams::from_schema(&tool.descriptor().input_schema);
        let mirrored = (!mirrored.params().is_empty()).then(|| Arc::new(mirrored));
        let mut known = self.0.write();
        if known.len() >= MAX_ENTRIES {
            known.clear();
        }
        known.insert(*digest, mirrored.clone());
        mirrored
    }
}
