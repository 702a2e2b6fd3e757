use std::{collections::BTreeMap, time::Duration};

use tool_core::{DefinitionPolicy, Origin, Overrides, Pattern, PinMode, Template};

use super::words::words;
use crate::servers::list_limits::ListLimitsSpec;

/// A command endpoint to take tools from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EndpointSpec {
    /// Its name, unique among endpoints and servers.
    pub name: String,
    /// Place of its configuration.
    pub origin: Origin,
    /// Program to start.
    pub command: Template,
    /// Its arguments.
    pub args: Vec<Template>,
    /// Variables of its environment.
    pub env: BTreeMap<String, Template>,
    /// Names of variables that are handed down to it, in addition to those that a process needs to start; those of the defaults
    /// if absent.
    pub inherit_env: Option<Vec<String>>,
    /// The directory to start it in.
    pub cwd: Option<Template>,
    /// Time limit of one attempt; the default of the configuration if absent.
    pub timeout: Option<Duration>,
    /// Time limit of a list of its tools; the time limit of a server's start in the defaults if absent.
    pub list_timeout: Option<Duration>,
    /// Settings of all of its tools, instead of the defaults.
    pub overrides: Overrides,
    /// The only tools that are offered, by the endpoint's own names; all if absent.
    pub include: Option<Vec<Pattern>>,
    /// Tools that are not offered, by the endpoint's own names.
    pub exclude: Vec<Pattern>,
    /// Prefix of the names of its tools; see [`EndpointSpec::prefix`].
    pub prefix: Option<String>,
    /// `true` if it is not used.
    pub disabled: bool,
    /// Interval at which its list is read again; the default of the configuration if absent.
    pub refresh_interval: Option<Duration>,
    /// Handling of its suspicious definitions; that of the policy if absent.
    pub definitions: Option<DefinitionPolicy>,
    /// Pins of its definitions; those of the policy if absent.
    pub pin: Option<PinMode>,
    /// Limits of its list, as far as they differ from the defaults.
    pub list_limits: ListLimitsSpec,
}

impl EndpointSpec {
    /// Name of the environment variable with the command of an endpoint that is used without a configuration.
    pub const VARIABLE: &'static str = "MCP_ENDPOINT";
    /// Name of the endpoint of that variable.
    pub const VARIABLE_NAME: &'static str = "endpoint";

    /// An endpoint with all of its tools under the usual prefix, in the base environment.
    #[must_use]
    pub fn new(name: impl Into<String>, command: Template) -> Self {
        let name = name.into();
        Self {
            origin: Origin::operator(format!("endpoint `{name}`")),
            name,
            command,
            args: Vec::new(),
            env: BTreeMap::new(),
            inherit_env: None,
            cwd: None,
            timeout: None,
            list_timeout: None,
            overrides: Overrides::default(),
            include: None,
            exclude: Vec::new(),
            prefix: None,
            disabled: false,
            refresh_interval: None,
            definitions: None,
            pin: None,
            list_limits: ListLimitsSpec::default(),
        }
    }

    /// Returns the endpoint of a command line, as `MCP_ENDPOINT` holds it: words, which single quotes, double quotes and
    /// backslashes hold together as in a shell. No shell reads it, so that an operator of a shell is an error, and so is a
    /// reference.
    ///
    /// # Errors
    /// The reason if the text is no such command line.
    ///
    /// # Examples
    /// ```
    /// use tool_manifest::EndpointSpec;
    ///
    /// let endpoint = EndpointSpec::from_command_line("echo", "python3 'my endpoint.py' --quiet")?;
    /// assert_eq!(endpoint.command.literal(), Some("python3"));
    /// assert_eq!(endpoint.args[0].literal(), Some("my endpoint.py"));
    /// assert!(EndpointSpec::from_command_line("echo", "cat | sh").is_err());
    /// # Ok::<(), String>(())
    /// ```
    pub fn from_command_line(name: impl Into<String>, text: &str) -> Result<Self, String> {
        // The words are texts, in which a dollar sign has no meaning.
        let literal =
            |word: String| Template::parse(&word.replace('$', "$$")).map_err(|error| error.to_string());
        let mut words = words(text)?.into_iter();
        let command = words.next().ok_or_else(|| "it names no program".to_owned())?;
        let mut endpoint = Self::new(name, literal(command)?);
        endpoint.args = words.map(literal).collect::<Result<_, _>>()?;
        Ok(endpoint)
    }

    /// Returns the endpoint of the environment variable `MCP_ENDPOINT` with this value.
    ///
    /// # Errors
    /// The reason if the value is no command line.
    pub fn from_variable(value: &str) -> Result<Self, String> {
        let mut endpoint = Self::from_command_line(Self::VARIABLE_NAME, value)?;
        endpoint.origin = Origin::operator(format!("${}", Self::VARIABLE));
        Ok(endpoint)
    }

    /// Returns the prefix of the names of the endpoint's tools: the configured one, which may be empty, or the endpoint's name
    /// and `__`.
    #[must_use]
    pub fn prefix(&self) -> String {
        match &self.prefix {
            Some(prefix) => prefix.clone(),
            None => format!("{}__", self.name),
        }
    }

    /// Returns the texts that may contain references, each with the JSON Pointer to where it is written.
    #[must_use]
    pub fn templates(&self) -> Vec<(String, &Template)> {
        let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
        let args = self.args.iter().enumerate();
        let env = self.env.iter();
        let mut templates = vec![("/command".to_owned(), &self.command)];
        templates.extend(args.map(|(index, arg)| (format!("/args/{index}"), arg)));
        templates.extend(env.map(|(name, value)| (format!("/env/{}", escaped(name)), value)));
        templates.extend(self.cwd.iter().map(|cwd| ("/cwd".to_owned(), cwd)));
        templates
    }
}
