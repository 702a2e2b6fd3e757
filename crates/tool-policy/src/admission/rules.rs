use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    time::{Duration, SystemTime},
};

use crate::ApprovalRule;
use tool_core::{Caller, ErrorKind, Feature, Pattern, ResourceUri, Target, Tool, ToolError};

use crate::CallLimits;

/// Who may see and call what: tools, and the prompts and resources of servers in the same way. The same rules hold for
/// lists and for calls, and always for the resolved tool, whatever name it was asked for by: what forbids or asks for something
/// is about a tool if it fits any of its [names](Tool::names), so a tool of a server that was renamed, or that a manifest offers
/// under a name of its own, is still that tool. The allow-list speaks of the name alone that agents see: another tool may
/// have one of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Whether tools may be called at all, and whether a model must call one.
    pub tool_choice: ToolChoice,
    /// Tools that no one may call.
    pub blocklist: Vec<Pattern>,
    /// The only tools that may be called; all of them if absent.
    pub allowlist: Option<Vec<Pattern>>,
    /// Permissions that tools require beside those that they ask for themselves: every rule counts whose pattern fits.
    pub required_permissions: Vec<(Pattern, Vec<String>)>,
    /// How much may be called in a turn and in a conversation.
    pub limits: CallLimits,
    /// Which calls somebody must approve.
    pub approval: ApprovalRules,
    /// Tools that operators switched off by hand, by name. No configuration says this: a reload carries it over.
    pub switched_off: BTreeMap<String, SwitchedOff>,
}

/// A tool that an operator switched off by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchedOff {
    /// The operator's reason, in words that callers are told.
    pub reason: Option<String>,
    /// Time at which it was switched off.
    pub since: SystemTime,
}

impl fmt::Display for SwitchedOff {
    /// The reason as a sentence without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operator switched it off")?;
        match &self.reason {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

/// Whether a model may, must or must not call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ToolChoice {
    /// It may.
    #[default]
    Auto,
    /// It must, in each turn. A single call cannot break this: who runs the loop of an agent asks at the end of a turn.
    Required,
    /// It must not: no tool is shown, and none can be called.
    None,
}

/// Which calls somebody must approve, beside those of tools whose own settings say so, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRules {
    /// Tools, prompts and resources that nobody calls without approval, whatever their own settings say.
    pub required: Vec<Pattern>,
    /// Whether somebody else than the caller must decide: then the caller's own client is not asked.
    pub separate_approver: bool,
    /// How long an approval that is asked for can be given and used: 10 min.
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

/// Why a caller may not call a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denial {
    /// No tool may be called.
    #[error("the policy forbids to call tools: its `tool_choice` is `none`")]
    NoTools,
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
    /// The URI of the resource is encoded so often that nobody can tell which rules it fits.
    #[error("`{resource}` is not written plainly, so the policy cannot tell which rules it fits")]
    Unclear {
        /// The resource.
        resource: String,
    },
    /// An operator switched the tool off by hand.
    #[error("`{tool}` is switched off: {off}")]
    SwitchedOff {
        /// The tool.
        tool: String,
        /// Why and since when.
        off: SwitchedOff,
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

impl Denial {
    /// In one word, for traces: nothing of a caller's or of a tool's.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::NoTools => "tool_choice",
            Self::Blocked { .. } => "blocklist",
            Self::NotAllowed { .. } => "allowlist",
            Self::Unclear { .. } => "unclear_uri",
            Self::SwitchedOff { .. } => "switched_off",
            Self::Lacks { .. } => "permission",
        }
    }
}

impl From<Denial> for ToolError {
    /// A tool that is switched off cannot be used now; all other rules forbid the call.
    fn from(refusal: Denial) -> Self {
        match refusal {
            Denial::SwitchedOff { .. } => {
                Self::new(ErrorKind::Unavailable, refusal.to_string()).with_no_retry()
            }
            _ => Self::new(ErrorKind::Denied, refusal.to_string()),
        }
    }
}

impl Rules {
    /// Decides whether a caller may see and call a tool, or see a resource or template.
    ///
    /// # Errors
    /// The first rule that speaks against it: tool choice, blocklist, allow-list, permissions, an operator's switch.
    pub fn admit(&self, tool: &Tool, caller: &Caller) -> Result<(), Denial> {
        if self.tool_choice == ToolChoice::None && tool.feature() == Feature::Tool {
            return Err(Denial::NoTools);
        }
        // Last: who may not see a tool does not hear that it is off either.
        self.admit_switched_on(tool, caller)?;
        self.switched_on(tool)
    }

    fn admit_switched_on(&self, tool: &Tool, caller: &Caller) -> Result<(), Denial> {
        let subject = self.subject(tool.name(), tool, uri_of(tool))?;
        self.not_blocked(&subject)?;
        self.allowed(&subject)?;
        self.permitted(&subject, caller)
    }

    fn switched_on(&self, tool: &Tool) -> Result<(), Denial> {
        if self.switched_off.is_empty() || tool.feature() != Feature::Tool {
            return Ok(());
        }
        match tool.names().find_map(|name| self.switched_off.get(name)) {
            Some(off) => Err(Denial::SwitchedOff {
                tool: tool.name().to_string(),
                off: off.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Decides whether a caller may make a call of this target. A resource must be admitted by its own name, in every
    /// [reading](ResourceUri) of its URI, and nothing may speak against the template that stands for it.
    ///
    /// # Errors
    /// As [`Rules::admit`].
    pub fn admit_call(&self, target: &Target, caller: &Caller) -> Result<(), Denial> {
        let tool = target.tool();
        let uri = match target {
            Target::Resource { uri, .. } => uri,
            // What has begun ends as it began, and may be asked about.
            Target::Task { .. } if self.tool_choice != ToolChoice::None => {
                return self.admit_switched_on(tool, caller);
            }
            _ => return self.admit(tool, caller),
        };
        let name = target.name();
        if *name != **tool.name() {
            let listed = self.subject(tool.name(), tool, uri_of(tool))?;
            self.not_blocked(&listed)?;
            self.permitted(&listed, caller)?;
        }
        let subject = self.subject(&name, tool, Some(uri))?;
        self.not_blocked(&subject)?;
        self.allowed(&subject)?;
        self.permitted(&subject, caller)
    }

    /// Why somebody must approve a call of this target, in words that follow "because"; nothing if nobody need. What
    /// completes an argument, and what asks about a task that was approved, needs no approval.
    #[must_use]
    pub fn approval_of(&self, target: &Target) -> Option<Cow<'static, str>> {
        let tool = target.tool();
        if matches!(target, Target::Completion(_) | Target::Task { .. }) {
            return None;
        }
        // Before any name is made: most tools need none.
        let rule = tool.settings().get::<ApprovalRule>();
        let is_set = rule == Some(&ApprovalRule::Required) && tool.feature() == Feature::Tool;
        if is_set {
            return Some("the tool is set up so".into());
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
            return Some("nobody can tell which rules its name fits".into());
        };
        let rules = &self.approval.required;
        let rule = rules.iter().find(|rule| subject.could_match(rule))?;
        Some(format!("of the policy rule `{}`", rule.as_str()).into())
    }

    /// Whether whoever makes a call of this target needs no permission for it.
    #[must_use]
    pub fn is_open(&self, target: &Target) -> bool {
        let nobody = Caller::new("nobody");
        !matches!(
            self.admit_call(target, &nobody),
            Err(Denial::Lacks { .. } | Denial::Unclear { .. })
        )
    }

    /// Whether no rule speaks of names.
    fn is_empty(&self) -> bool {
        self.blocklist.is_empty() && self.allowlist.is_none() && self.required_permissions.is_empty()
    }

    /// Describes a tool, or a resource with this URI, to the rules of admission.
    fn subject<'a>(&self, name: &'a str, tool: &'a Tool, uri: Option<&str>) -> Result<Subject<'a>, Denial> {
        let uri = uri.filter(|_| !self.is_empty());
        Subject::new(name, tool, uri)
    }

    /// The permissions that a call of this subject requires, those first that the tool itself asks for.
    fn required<'a>(&'a self, subject: &'a Subject<'_>) -> impl Iterator<Item = &'a String> {
        let rules = self.required_permissions.iter();
        let fitting = rules.filter(|(rule, _)| subject.could_match(rule));
        let own = &subject.tool.descriptor().metadata.required_permissions;
        own.iter().chain(fitting.flat_map(|(_, permissions)| permissions))
    }

    fn permitted(&self, subject: &Subject<'_>, caller: &Caller) -> Result<(), Denial> {
        let is_missing = |permission: &&String| !caller.permissions.contains(permission.as_str());
        match self.required(subject).find(is_missing) {
            Some(permission) => Err(Denial::Lacks {
                tool: subject.name.to_owned(),
                principal: caller.principal.to_string(),
                permission: permission.clone(),
            }),
            None => Ok(()),
        }
    }

    fn not_blocked(&self, subject: &Subject<'_>) -> Result<(), Denial> {
        match self.blocklist.iter().find(|rule| subject.could_match(rule)) {
            Some(rule) => Err(Denial::Blocked {
                tool: subject.name.to_owned(),
                rule: rule.as_str().to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn allowed(&self, subject: &Subject<'_>) -> Result<(), Denial> {
        match &self.allowlist {
            Some(rules) if !subject.is_within(rules) => Err(Denial::NotAllowed {
                tool: subject.name.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// A tool, prompt or resource as rules see it.
struct Subject<'a> {
    /// The name under which something is called or listed.
    name: &'a str,
    tool: &'a Tool,
    /// The name of a resource or template, taken apart.
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

    /// Whether a rule that forbids or asks for something is about this, under any of its names.
    fn could_match(&self, rule: &Pattern) -> bool {
        let others = self.tool.provenance().names.iter().map(|name| &**name);
        let mut names = std::iter::once(self.name).chain(others);
        names.any(|name| rule.matches(name))
            || self.resource.as_ref().is_some_and(|uri| uri.could_match(rule))
    }

    /// Whether rules that allow speak of this.
    fn is_within(&self, rules: &[Pattern]) -> bool {
        match &self.resource {
            Some(uri) => uri.is_within(rules),
            None => rules.iter().any(|rule| rule.matches(self.name)),
        }
    }
}

/// The URI of a resource, or of a template.
fn uri_of(tool: &Tool) -> Option<&str> {
    let is_resource = matches!(tool.feature(), Feature::Resource | Feature::ResourceTemplate);
    tool.descriptor().uri.as_deref().filter(|_| is_resource)
}
