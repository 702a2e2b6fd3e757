//! Usage: figures of calls for each day, tool and principal, gathered and written to a storage.

mod memory;
mod recorder;

pub use self::{
    memory::MemoryUsage,
    recorder::{UsageRecorder, UsageSettings},
};
