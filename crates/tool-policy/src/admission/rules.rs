use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    time::{Duration, SystemTime},
};

use crate::ApprovalRule;
use tool_core::{Caller, Feature, Pattern, ResourceUri, Target, Tool};

use super::Denial;
use crate::QuotaLimits;

/// The operator's rules about who may see and call tools, prompts and resources.
///
/// Rules apply to lists and to calls alike, and always to the resolved tool, whatever name a caller used. A rule that
/// forbids or requires something matches a tool by any of its [names](Tool::names): a server's tool that was renamed, or that a
/// manifest offers under another name, is still that tool. The allow-list matches only the name that agents see, since
/// another tool may have one of the other names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// Policy for tool use: whether tools may be called at all, and whether a model must call one.
    pub tool_choice: ToolChoice,
    /// Tools that nobody may call.
    pub blocklist: Vec<Pattern>,
    /// The only tools that may be called. `None` allows all of them.
    pub allowlist: Option<Vec<Pattern>>,
    /// Permissions that tools require in addition to those in their metadata. Every rule whose pattern matches applies.
    pub required_permissions: Vec<(Pattern, Vec<String>)>,
    /// Quota of a turn and of a conversation.
    pub limits: QuotaLimits,
    /// Rules about calls that somebody must approve.
    pub approval: ApprovalRules,
    /// Tools that operators disabled, by name. This is not part of the configuration: a reload keeps it.
    pub disabled: BTreeMap<String, DisabledByOperator>,
}

/// A tool that an operator disabled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DisabledByOperator {
    /// The operator's reason. Callers see it.
    pub reason: Option<String>,
    /// Time at which the tool was disabled.
    pub since: SystemTime,
}

impl DisabledByOperator {
    /// Creates the record of a tool that was disabled at this time, without a reason.
    #[must_use]
    pub const fn new(since: SystemTime) -> Self {
        Self { reason: None, since }
    }

    /// Sets the reason, which callers see.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

impl fmt::Display for DisabledByOperator {
    /// Writes the reason as a sentence without a period.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operator switched it off")?;
        match &self.reason {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

/// Policy for tool use: a model may, must or must not call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model may call tools.
    #[default]
    Auto,
    /// The model must call a tool in each turn. A single call cannot violate this: the agent's loop checks it at the end of a
    /// turn.
    Required,
    /// The model must not call tools: no tool is listed, and none can be called.
    None,
}

/// Rules about approvals: calls that need one in addition to those of tools whose own settings require it, and how it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalRules {
    /// Tools, prompts and resources that need approval, whatever their own settings say.
    pub required: Vec<Pattern>,
    /// `true` if somebody other than the caller must decide. The caller's own client is then not asked.
    pub separate_approver: bool,
    /// Time for which a requested approval can be given and used. Default: 10 min.
    pub expires_after: Duration,
}

impl Default for ApprovalRules {
    fn default() -> Self {
        Self {
            required: Vec::new(),
            separate_approver: false,
            expires_after: Duration::from_secs(10 * 60),
        }
    }
}

impl ApprovalRules {
    /// Sets the tools, prompts and resources that need approval.
    #[must_use]
    pub fn with_required(mut self, required: impl IntoIterator<Item = Pattern>) -> Self {
        self.required = required.into_iter().collect();
        self
    }

    /// Sets if somebody other than the caller must decide.
    #[must_use]
    pub fn with_separate_approver(mut self, separate_approver: bool) -> Self {
        self.separate_approver = separate_approver;
        self
    }

    /// Sets the time for which a requested approval can be given and used.
    #[must_use]
    pub fn with_expires_after(mut self, expires_after: Duration) -> Self {
        self.expires_after = expires_after;
        self
    }
}

impl Rules {
    /// Sets the policy for tool use.
    #[must_use]
    pub fn with_tool_choice(mut self, tool_choice: ToolChoice) -> Self {
        self.tool_choice = tool_choice;
        self
    }

    /// Sets the tools that nobody may call.
    #[must_use]
    pub fn with_blocklist(mut self, blocklist: impl IntoIterator<Item = Pattern>) -> Self {
        self.blocklist = blocklist.into_iter().collect();
        self
    }

    /// Sets the only tools that may be called.
    #[must_use]
    pub fn with_allowlist(mut self, allowlist: impl IntoIterator<Item = Pattern>) -> Self {
        self.allowlist = Some(allowlist.into_iter().collect());
        self
    }

    /// Sets the permissions that tools require in addition to their own.
    #[must_use]
    pub fn with_required_permissions(mut self, required_permissions: Vec<(Pattern, Vec<String>)>) -> Self {
        self.required_permissions = required_permissions;
        self
    }

    /// Sets the quota of a turn and of a conversation.
    #[must_use]
    pub fn with_limits(mut self, limits: QuotaLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the rules about calls that somebody must approve.
    #[must_use]
    pub fn with_approval(mut self, approval: ApprovalRules) -> Self {
        self.approval = approval;
        self
    }

    /// Decides whether a caller may see and call a tool, or see a resource or template.
    ///
    /// # Errors
    /// Returns the first denial, in this order: tool choice, blocklist, allow-list, permissions, disabled by an operator.
    pub fn admit(&self, tool: &Tool, caller: &Caller) -> Result<(), Denial> {
        if self.tool_choice == ToolChoice::None && tool.feature() == Feature::Tool {
            return Err(Denial::NoTools);
        }
        // Last: a caller who may not see a tool does not learn either that it is disabled.
        self.admit_enabled(tool, caller)?;
        self.check_enabled(tool)
    }

    /// Returns `false` if a caller may call nothing whose name begins with this prefix, whatever the rest: a rule forbids all of
    /// it, or requires a permission that the caller lacks. For servers whose tools are not known yet.
    #[must_use]
    pub fn may_admit_prefix(&self, prefix: &str, caller: &Caller) -> bool {
        let covers = |rule: &Pattern| {
            let rests = rule.after(prefix);
            rests.iter().any(|rest| matches!(rest.as_str(), "*" | "**"))
        };
        let lacks = |needed: &[String]| {
            let mut needed = needed.iter();
            needed.any(|permission| !caller.has_permission(permission))
        };
        let mut required = self.required_permissions.iter();
        !self.blocklist.iter().any(covers)
            && !required.any(|(rule, permissions)| covers(rule) && lacks(permissions))
    }

    fn admit_enabled(&self, tool: &Tool, caller: &Caller) -> Result<(), Denial> {
        let subject = self.subject(tool.name(), tool, uri_of(tool))?;
        self.check_blocklist(&subject)?;
        self.check_allowlist(&subject)?;
        self.check_permissions(&subject, caller)
    }

    fn check_enabled(&self, tool: &Tool) -> Result<(), Denial> {
        if self.disabled.is_empty() || tool.feature() != Feature::Tool {
            return Ok(());
        }
        match tool.names().find_map(|name| self.disabled.get(name)) {
            Some(disabled) => Err(Denial::Disabled {
                tool: tool.name().to_string(),
                disabled: disabled.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Decides whether a caller may call this target. A resource must be admitted by its own name, in every
    /// [reading](ResourceUri) of its URI. No rule may forbid its template either.
    ///
    /// # Errors
    /// Returns the first denial, as [`Rules::admit`] does.
    pub fn admit_call(&self, target: &Target, caller: &Caller) -> Result<(), Denial> {
        let tool = target.tool();
        let uri = match target {
            Target::Resource { uri, .. } => uri,
            // A task that was started may finish and may be queried, even if its tool was disabled meanwhile.
            Target::Task { .. } if self.tool_choice != ToolChoice::None => {
                return self.admit_enabled(tool, caller);
            }
            _ => return self.admit(tool, caller),
        };
        let name = target.name();
        if *name != **tool.name() {
            let listed = self.subject(tool.name(), tool, uri_of(tool))?;
            self.check_blocklist(&listed)?;
            self.check_permissions(&listed, caller)?;
        }
        let subject = self.subject(&name, tool, Some(uri))?;
        self.check_blocklist(&subject)?;
        self.check_allowlist(&subject)?;
        self.check_permissions(&subject, caller)
    }

    /// Returns the reason for which a call of this target needs approval, in words that follow "because", or `None` if it needs
    /// none. Completions, and requests about a task that was approved, need no approval.
    #[must_use]
    pub fn approval_reason(&self, target: &Target, caller: &Caller) -> Option<Cow<'static, str>> {
        let tool = target.tool();
        if matches!(target, Target::Completion(_) | Target::Task { .. }) {
            return None;
        }
        // Before any name is built: most tools need no approval.
        let rule = tool.settings().get::<ApprovalRule>();
        match rule.filter(|_| tool.feature() == Feature::Tool) {
            Some(ApprovalRule::Required) => return Some("the tool's settings require it".into()),
            Some(ApprovalRule::UnlessPermitted(permission)) if !caller.permissions.contains(*permission) => {
                let reason = format!("`{}` lacks the permission `{permission}`", caller.principal);
                return Some(reason.into());
            }
            _ => {}
        }
        if self.approval.required.is_empty() {
            return None;
        }
        let name = target.name();
        let uri = match target {
            Target::Resource { uri, .. } => Some(&**uri),
            _ => None,
        };
        let Ok(subject) = Subject::new(&name, tool, uri) else {
            return Some("the rules that match its name are unknown".into());
        };
        let rules = &self.approval.required;
        let rule = rules.iter().find(|rule| subject.could_match(rule))?;
        Some(format!("of the policy rule `{}`", rule.as_str()).into())
    }

    /// Returns `true` if callers need no permission to call this target.
    #[must_use]
    pub fn needs_no_permission(&self, target: &Target) -> bool {
        let nobody = Caller::new("nobody");
        !matches!(
            self.admit_call(target, &nobody),
            Err(Denial::Lacks { .. } | Denial::Unclear { .. })
        )
    }

    /// Returns the permissions that callers of this tool need: those in its metadata, then those of the rules that match it.
    #[must_use]
    pub fn permissions_of(&self, tool: &Tool) -> Vec<String> {
        match self.subject(tool.name(), tool, uri_of(tool)) {
            Ok(subject) => self.required_permissions(&subject).cloned().collect(),
            // Nobody may see it.
            Err(_) => Vec::new(),
        }
    }

    /// Returns `true` if no rule refers to names.
    fn has_no_name_rules(&self) -> bool {
        self.blocklist.is_empty() && self.allowlist.is_none() && self.required_permissions.is_empty()
    }

    /// Describes a tool, or a resource with this URI, for matching.
    fn subject<'a>(&self, name: &'a str, tool: &'a Tool, uri: Option<&str>) -> Result<Subject<'a>, Denial> {
        let uri = uri.filter(|_| !self.has_no_name_rules());
        Subject::new(name, tool, uri)
    }

    /// Returns the permissions that a call of this subject requires, beginning with those in the tool's metadata.
    fn required_permissions<'a>(&'a self, subject: &'a Subject<'_>) -> impl Iterator<Item = &'a String> {
        let rules = self.required_permissions.iter();
        let matching = rules.filter(|(rule, _)| subject.could_match(rule));
        let own = &subject.tool.descriptor().metadata.required_permissions;
        own.iter()
            .chain(matching.flat_map(|(_, permissions)| permissions))
    }

    fn check_permissions(&self, subject: &Subject<'_>, caller: &Caller) -> Result<(), Denial> {
        let is_missing = |permission: &&String| !caller.has_permission(permission);
        match self.required_permissions(subject).find(is_missing) {
            Some(permission) => Err(Denial::Lacks {
                tool: subject.name.to_owned(),
                principal: caller.principal.to_string(),
                permission: permission.clone(),
            }),
            None => Ok(()),
        }
    }

    fn check_blocklist(&self, subject: &Subject<'_>) -> Result<(), Denial> {
        match self.blocklist.iter().find(|rule| subject.could_match(rule)) {
            Some(rule) => Err(Denial::Blocked {
                tool: subject.name.to_owned(),
                rule: rule.as_str().to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn check_allowlist(&self, subject: &Subject<'_>) -> Result<(), Denial> {
        match &self.allowlist {
            Some(rules) if !subject.is_within(rules) => Err(Denial::NotAllowed {
                tool: subject.name.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// A tool, prompt or resource, as rules match it.
struct Subject<'a> {
    /// Name under which it is called or listed.
    name: &'a str,
    tool: &'a Tool,
    /// Parsed name of a resource or template.
    resource: Option<ResourceUri<'a>>,
}

impl<'a> Subject<'a> {
    fn new(name: &'a str, tool: &'a Tool, uri: Option<&str>) -> Result<Self, Denial> {
        let read = |uri| {
            let prefix = name.strip_suffix(uri).unwrap_or_default();
            let unclear = || Denial::Unclear {
                resource: name.to_owned(),
            };
            ResourceUri::new(prefix, uri).ok_or_else(unclear)
        };
        let resource = uri.map(read).transpose()?;
        Ok(Self { name, tool, resource })
    }

    /// Returns `true` if a rule that forbids or requires something may match this, under any of its names.
    fn could_match(&self, rule: &Pattern) -> bool {
        let others = self.tool.provenance().names.iter().map(|name| &**name);
        let mut names = std::iter::once(self.name).chain(others);
        names.any(|name| rule.matches(name))
            || self.resource.as_ref().is_some_and(|uri| uri.could_match(rule))
    }

    /// Returns `true` if one of these allowing rules matches this.
    fn is_within(&self, rules: &[Pattern]) -> bool {
        match &self.resource {
            Some(uri) => uri.is_within(rules),
            None => rules.iter().any(|rule| rule.matches(self.name)),
        }
    }
}

/// Returns the URI of a resource or of a template.
fn uri_of(tool: &Tool) -> Option<&str> {
    let is_resource = matches!(tool.feature(), Feature::Resource | Feature::ResourceTemplate);
    tool.descriptor().uri.as_deref().filter(|_| is_resource)
}
