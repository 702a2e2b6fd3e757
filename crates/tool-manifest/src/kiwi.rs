use raw_json::RawJson;

use crate::{node::NodeId, place::Cx};

pub(crate) fn parameters(_cx: Cx<'_>, _at: NodeId) -> Option<RawJson> {
    None
}
