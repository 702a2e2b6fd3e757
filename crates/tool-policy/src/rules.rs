use tool_core::{Caller, Pattern, Tool};

/// Who may see and call what. The same rules hold for lists and for calls, and always for the resolved tool,
/// whatever name it was asked for by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Tools that no one may call.
    pub blocklist: Vec<Pattern>,
    /// The only tools that may be called; all of them if absent.
    pub allowlist: Option<Vec<Pattern>>,
}

/// Why a caller may not call a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The tool is on the blocklist.
    #[error("`{tool}` is blocked by the policy rule `{rule}`")]
    Blocked {
        /// The tool.
        tool: String,
        /// The rule that it fits.
        rule: String,
    },
    /// There is an allow-list, and the tool is not on it.
    #[error("`{tool}` is not on the policy's allow-list")]
    NotAllowed {
        /// The tool.
        tool: String,
    },
    /// The tool asks for permissions that the caller does not have.
    #[error("`{principal}` lacks the permission `{permission}` that `{tool}` requires")]
    Lacks {
        /// The tool.
        tool: String,
        /// The caller.
        principal: String,
        /// The first permission that is missing.
        permission: String,
    },
}

impl Rules {
    /// Decides whether a caller may see and call a tool.
    ///
    /// # Errors
    /// The first rule that speaks against it: blocklist, allow-list, permissions.
    pub fn admit(&self, tool: &Tool, caller: &Caller) -> Result<(), Refusal> {
        let name = tool.name();
        if let Some(rule) = self.blocklist.iter().find(|rule| rule.matches(name)) {
            return Err(Refusal::Blocked {
                tool: name.to_string(),
                rule: rule.as_str().to_owned(),
            });
        }
        if self
            .allowlist
            .as_ref()
            .is_some_and(|list| !list.iter().any(|rule| rule.matches(name)))
        {
            return Err(Refusal::NotAllowed {
                tool: name.to_string(),
            });
        }
        let required = &tool.descriptor().metadata.required_permissions;
        match required
            .iter()
            .find(|permission| !caller.permissions.contains(permission.as_str()))
        {
            Some(permission) => Err(Refusal::Lacks {
                tool: name.to_string(),
                principal: caller.principal.to_string(),
                permission: permission.clone(),
            }),
            None => Ok(()),
        }
    }
}
