//! Limits of a whole process tree by control groups, of version 1 or 2.

mod find;
mod group;

pub(super) use self::find::Cgroups;
pub(super) use self::group::TreeGroup;
