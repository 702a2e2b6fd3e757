use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
use mcp_wire::MirroredParams;
use parking_lot::RwLock;
use toolplane::core::Tool;

/// Which arguments clients mirror in headers, by the digest of their tool: read once for each definition. Digests are
/// as good as random, so that any hash of them will do.
#[derive(Debug, Default)]
pub(crate) struct Mirrors(RwLock<HashMap<[u8; 32], Option<Arc<MirroredParams>>, RandomState>>);

/// How many definitions are kept; when there are more, all are read again.
const MAX: usize = 4096;

impl Mirrors {
    pub(crate) fn of(&self, tool: &Tool) -> Option<Arc<MirroredParams>> {
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
        if known.len() >= MAX {
            known.clear();
        }
        known.insert(*digest, mirrored.clone());
        mirrored
    }
}
