//! Lists of tools, prompts and resources: read from servers, turned into descriptors, refreshed and cached.

mod cache;
mod client_list_reader;
mod client_list_state;
mod client_lists;
mod entries;
mod freshness;
mod list_warnings;
mod read_lists;
mod refresh_schedule;

pub use self::cache::{CachedLists, FileListCache, ListCache, ListCacheKey, MemoryListCache, PrivateFolder};
pub(crate) use self::{
    cache::ServerListCache,
    client_list_reader::ClientListReader,
    client_list_state::ClientListState,
    client_lists::ClientLists,
    entries::{EntryKey, describe, instructions_for_models, replace_lists},
    freshness::Freshness,
    list_warnings::ListWarnings,
    read_lists::{changed_lists, cut_warning, hide_secrets, read_lists},
    refresh_schedule::RefreshSchedule,
};
