//! Changes of versions that agents made: what operators allow them.

use tool_core::{Descriptor, SecretUse};

use super::{
    Acceptance, AgentVersion, PublishError, Publisher, SecretGrant, StoreOperation, StoredVersion,
    ToolRecord, VersionHead, VersionRequest,
    offer_reader::{agent_origin, complete},
};

impl Publisher {
    /// Returns the descriptor of a version as a registry would offer it, whatever its state.
    ///
    /// # Errors
    /// If its manifest cannot be read.
    pub fn describe(&self, tool: &str, stored: &StoredVersion) -> Result<Descriptor, PublishError> {
        let descriptor = self.manifests().read(tool, &stored.manifest);
        let mut descriptor = descriptor.map_err(PublishError::Invalid)?;
        let place = (self.store().name(), tool);
        complete(&mut descriptor, place, &stored.head.version, &stored.files);
        if let Some(agent) = &stored.head.agent {
            descriptor.origin = agent_origin(&descriptor, agent, &stored.head.digest);
        }
        Ok(descriptor)
    }

    /// Accepts what a version of an agent declares, if it still has the content that was read: its guarantees and its settings of
    /// layers count from now on.
    ///
    /// # Cancellation
    /// Dropping the future leaves the change made or not made.
    ///
    /// # Errors
    /// If there is no such version of an agent, if it has other content, if somebody else changed the tool meanwhile, or if the
    /// store does not work.
    pub async fn accept(
        &self,
        tool: &str,
        read: &VersionHead,
        by: &str,
    ) -> Result<VersionHead, PublishError> {
        let now = self.clock().wall();
        self.change_read(tool, read, |agent| {
            agent.accepted = Some(Acceptance::new(by, now));
        })
        .await
    }

    /// Records that all examples of a version have succeeded now, if it still has this content.
    ///
    /// # Cancellation
    /// Dropping the future leaves the change made or not made.
    ///
    /// # Errors
    /// As for [`Publisher::accept`].
    pub async fn set_tested(&self, tool: &str, tested: &VersionHead) -> Result<VersionHead, PublishError> {
        let now = self.clock().wall();
        self.change_read(tool, tested, |agent| agent.tested_at = Some(now))
            .await
    }

    /// Grants uses of secrets to a version of an agent, if it still has the content that was read.
    ///
    /// # Cancellation
    /// Dropping the future leaves the change made or not made.
    ///
    /// # Errors
    /// As for [`Publisher::accept`].
    pub async fn grant(
        &self,
        tool: &str,
        read: &VersionHead,
        uses: &[SecretUse],
        by: &str,
    ) -> Result<VersionHead, PublishError> {
        let now = self.clock().wall();
        self.change_read(tool, read, |agent| {
            for needed in uses {
                agent.grants.retain(|grant| !grant.covers(needed, &read.digest));
                agent
                    .grants
                    .push(SecretGrant::new(needed.clone(), read.digest, by, now));
            }
            let key = |grant: &SecretGrant| {
                (
                    grant.secret.clone(),
                    grant.field.clone(),
                    grant.destination.clone(),
                )
            };
            agent.grants.sort_by_key(key);
        })
        .await
    }

    /// Revokes grants of a secret by a version of an agent; all of its grants if `secret` is `None`. Returns their number.
    ///
    /// # Cancellation
    /// Dropping the future leaves the change made or not made.
    ///
    /// # Errors
    /// If there is no such version of an agent, if somebody else changed the tool meanwhile, or if the store does not work.
    pub async fn revoke(
        &self,
        tool: &str,
        request: &VersionRequest,
        secret: Option<&str>,
    ) -> Result<usize, PublishError> {
        let mut n_revoked = 0;
        self.change_agent(tool, request, |_, agent| {
            let n_before = agent.grants.len();
            agent
                .grants
                .retain(|grant| secret.is_some_and(|secret| grant.secret != secret));
            n_revoked = n_before - agent.grants.len();
            Ok(())
        })
        .await?;
        Ok(n_revoked)
    }

    /// Changes the record of a version that an agent made, if it still has the content that was read.
    async fn change_read(
        &self,
        tool: &str,
        read: &VersionHead,
        change: impl FnOnce(&mut AgentVersion),
    ) -> Result<VersionHead, PublishError> {
        let request = VersionRequest::Exact(read.version.clone());
        self.change_agent(tool, &request, |head, agent| {
            if head.digest != read.digest {
                let message = format!("`{tool}@{}` was changed since it was read", head.version);
                return Err(PublishError::Invalid(message));
            }
            change(agent);
            Ok(())
        })
        .await
    }

    /// Changes the record of a version that an agent made.
    async fn change_agent(
        &self,
        tool: &str,
        request: &VersionRequest,
        change: impl FnOnce(&VersionHead, &mut AgentVersion) -> Result<(), PublishError>,
    ) -> Result<VersionHead, PublishError> {
        let (record, mut head) = self.select(tool, request).await?;
        let Some(mut agent) = head.agent.clone() else {
            let message = format!("`{tool}@{}` was not made by an agent", head.version);
            return Err(PublishError::Invalid(message));
        };
        change(&head, &mut agent)?;
        let operation = StoreOperation::SetAgent {
            version: head.version.clone(),
            agent: agent.clone(),
        };
        self.store().apply(tool, record.revision, vec![operation]).await?;
        head.agent = Some(agent);
        Ok(head)
    }
}

impl ToolRecord {
    /// Returns `true` if this agent made all versions, so that it may add others. A tool without versions belongs to nobody.
    #[must_use]
    pub fn belongs_to(&self, author: &str) -> bool {
        let is_own = |head: &VersionHead| head.agent.is_some() && *head.created_by == *author;
        self.versions.iter().all(is_own)
    }

    /// Returns the newest draft.
    #[must_use]
    pub fn newest_draft(&self) -> Option<&VersionHead> {
        let drafts = self.versions.iter().filter(|head| VersionRequest::is_draft(head));
        drafts.max_by(|a, b| a.version.cmp(&b.version))
    }
}
