//! Quotas of authors.

use tool_registry::{AuthoredVersion, NewVersion, VersionState};

use super::{Authoring, AuthoringError};

impl Authoring {
    /// Checks that an author may store one more draft, or another one of the same version.
    pub(super) async fn check_quotas(&self, author: &str, new: &NewVersion) -> Result<(), AuthoringError> {
        let quotas = self.state.spec.quotas;
        let versions = self.publisher.store().versions_by(author).await?;
        let is_replaced =
            |known: &&AuthoredVersion| known.tool == new.tool && known.head.version == new.version;
        let others = || versions.iter().filter(|known| !is_replaced(known));
        let n_drafts = others()
            .filter(|known| known.head.state == VersionState::Draft)
            .count();
        if n_drafts >= quotas.drafts as usize {
            return Err(AuthoringError::Quota(format!(
                "you have {n_drafts} drafts, and {} are allowed: publish one, or delete one by `tool_delete`",
                quotas.drafts
            )));
        }
        let files = new.files.values().map(|file| file.content.len());
        let n_new = new.manifest.as_str().len() + files.sum::<usize>();
        let n_bytes = others().map(|known| known.n_bytes).sum::<u64>() + n_new as u64;
        if n_bytes > quotas.bytes as u64 {
            return Err(AuthoringError::Quota(format!(
                "your tools would have {n_bytes} bytes, and {} are allowed: delete drafts by `tool_delete`",
                quotas.bytes
            )));
        }
        Ok(())
    }

    /// Checks that an author may publish one more version.
    pub(super) async fn check_published(&self, author: &str) -> Result<(), AuthoringError> {
        let most = self.state.spec.quotas.versions;
        let versions = self.publisher.store().versions_by(author).await?;
        let published = versions
            .iter()
            .filter(|known| known.head.state != VersionState::Draft);
        match published.count() {
            n_published if n_published >= most as usize => Err(AuthoringError::Quota(format!(
                "you have published {n_published} versions, and {most} are allowed"
            ))),
            _ => Ok(()),
        }
    }
}
