//! Sentences that give orders to a model rather than describe a tool.

use std::sync::LazyLock;

use regex::Regex;

/// Rule with the description of a finding and the pattern of its words.
struct Rule {
    name: &'static str,
    pattern: Regex,
}

/// Rules on words in lower case, separated by one space, which may be missing if letters were spaced out.
const OF_WORDS: [(&str, &str); 9] = [
    (
        "tells a model to ignore its instructions",
        "(?:ignore|disregard|forget|override|bypass|do not follow|stop following) ?(?:(?:all|any|every|the|your|these|those|of|my|other|our|its|and) ?){0,4}\
         (?:(?:previous|prior|earlier|preceding|above|former|foregoing|system|existing|original|initial|safety|previously given) ?){1,2}\
         (?:instructions?|prompts?|directives?|guidelines?|messages|orders)",
    ),
    (
        "tells a model to ignore its instructions",
        "(?:ignore|disregard|forget) ?(?:(?:all|any|every|everything|the|your|of) ?){0,3}\
         (?:(?:previous|prior|earlier|preceding|above) ?(?:rules?|commands?|context|text|conversations?)|(?:your|system) ?(?:instructions?|rules|guidelines?|prompts?)|everything (?:above|before|you were told))",
    ),
    (
        "tells a model to keep something from its user",
        "(?:do ?not|don ?t|never|must ?not|should ?not|without|avoid|refrain from) ?(?:ever )?(?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|notify(?:ing)?|reveal(?:ing)?|disclos(?:e|ing)|alert(?:ing)?|warn(?:ing)?|let(?:ting)?) ?\
         (?:(?:this|it|that|anything|any|of|about|to|the|your|these|steps?|instructions?|file|usage|is|read|required|details?) ?){0,8}(?:users?|humans?|operators?|anyone|anybody|customers?|people)",
    ),
    (
        "tells a model to keep something from its user",
        "(?:keep|hide|conceal|kept|hidden) ?(?:(?:this|it|that|all|secret|hidden|confidential|silent|quiet) ?){1,3}(?:from|to) ?(?:the |your )?(?:users?|humans?|operators?)|\
         (?:user|human|operator) ?(?:must ?not|should ?not|must never|should never|cannot|can ?not) ?(?:know|see|notice|learn|be (?:told|informed|notified|aware))",
    ),
    (
        "claims a place before other tools",
        "(?:before|prior to|instead of|rather than) ?(?:you )?(?:(?:using|calling|invoking|running|executing|use|call|invoke|run) ?)(?:of )?(?:any|all|every|each) ?(?:of )?(?:the )?(?:other |another )?(?:available )?(?:mcp )?(?:tools?|functions?)|\
         (?:before|instead of) ?(?:any|every|all) ?other ?(?:tools?|functions?)",
    ),
    (
        "asks for data to be sent away",
        "(?:send|forward|upload|post|transmit|leak|email|mail|bcc|copy|exfiltrate|submit|pass|include|put|append|attach) ?(?:(?:it|its|the|all|any|your|full|entire|whole|complete|user|users|raw|of|their|s|current) ?){0,5}\
         (?:conversations?(?: history)?|chat (?:history|log)|system prompts?|credentials|api ?keys?|passwords?|private keys?|ssh keys?|access tokens?|environment variables|previous messages|message history|secrets|(?:file )?contents?) \
         ?(?:(?:and|or|of|the|all|any|your|this|that|file|files|them|tokens?|it|with|every|request|call) ?){0,6}(?:to|via|as|into|in) ?(?:the |a |an |this |our |your )?\
         (?:https?|www|attacker|external|remote|following (?:url|address|server|endpoint)|sidenote|side ?note|(?:[a-z]+ )?(?:webhook|collector)|hidden|(?:url|address|email) (?:below|above))",
    ),
    (
        "asks for data to be sent away",
        "exfiltrat(?:e|ing) ?(?:of )?(?:the |all |any |user |this )?[a-z]+",
    ),
    (
        "changes a model's role",
        "you are ?(?:now|no longer) ?(?:an? |in |the )?(?:unrestricted|jailbroken|developer mode|dan|admin|administrator|root|evil|different|bound|restricted|unfiltered)|\
         (?:enter|enable|activate|switch to) ?(?:developer|dan|god|jailbreak|unrestricted) ?mode|\
         (?:new|updated|real|actual|hidden|secret) (?:system )?(?:instructions?|prompts?) (?:follow|are|begin|start|for (?:the )?(?:model|assistant|ai|agent|llm))|(?:begin|end|start) of (?:the )?(?:system )?(?:prompt|instructions)",
    ),
    (
        "changes a model's role",
        "(?:system|developer|assistant) (?:message|prompt|override|instruction) (?:you|from now|ignore|always|never|the (?:assistant|model|ai))",
    ),
];

/// Rules on the text in lower case, with its punctuation.
const OF_TEXT: [(&str, &str); 2] = [
    (
        "asks for a file with credentials",
        r"(?x)(?:read|open|cat|load|fetch|access|include|send|upload|print|dump|copy|collect|get|find|check|inspect|contents?\ of|pass)[\s`'\x22:(*_]+
          (?:(?:the|your|user's|users|all|any|file|files|contents?|of|from|and|at|in|local|its|key|keys|private|ssh|out|up|their|my|~?/?(?:home|root)/[a-z0-9._-]+/?)[\s`'\x22:(*_]+){0,6}
          [^\s]{0,40}(?:\.ssh(?:[/\s`'\x22.,;:)]|\z)|id_(?:rsa|ed25519|ecdsa|dsa)|\.aws/credentials|\.aws/config|/etc/(?:passwd|shadow|sudoers)|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.kube/config|\.docker/config\.json|\.cursor/mcp\.json|claude_desktop_config\.json|\.gnupg|\.config/gcloud|/proc/self/environ|\.bash_history|\.zsh_history)",
    ),
    (
        "runs a program from the network",
        r"(?:curl|wget)\s[^\n|]{0,200}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh(?-u:\b)",
    ),
];

static WORD_RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| rules(&OF_WORDS));
static TEXT_RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| rules(&OF_TEXT));

fn rules(list: &[(&'static str, &str)]) -> Vec<Rule> {
    list.iter()
        .map(|(name, pattern)| Rule {
            name,
            pattern: Regex::new(pattern).expect("the pattern is tested"),
        })
        .collect()
}

/// Returns the orders in a text, each with its description and its words. `plain` is the text with punctuation, `words` its
/// words.
pub(crate) fn orders<'a>(plain: &'a str, words: &'a str) -> Vec<(&'static str, &'a str)> {
    let mut found: Vec<(&'static str, &str)> = Vec::new();
    for (rules, text) in [(&*WORD_RULES, words), (&*TEXT_RULES, plain)] {
        for rule in rules {
            if found.iter().all(|(name, _)| *name != rule.name)
                && let Some(phrase) = rule.pattern.find(text)
            {
                found.push((rule.name, phrase.as_str()));
            }
        }
    }
    found
}

/// Returns the words by which a text speaks of the system prompt of a model. Few tools have a reason to.
pub(crate) fn model_prompt(words: &str) -> Option<&str> {
    let start = words.find("system prompt")?;
    words.get(start..start + "system prompt".len())
}

/// Minimum length of a suspicious encoded block, in characters.
const BLOB: usize = 256;

/// Returns a long block of base64 or hexadecimal digits, except for `data:` URLs, such as those of pictures.
pub(crate) fn blob(text: &str) -> Option<&str> {
    if text.len() < BLOB || text.trim_start().starts_with("data:") {
        return None;
    }
    let is_code = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    text.split(|c: char| !is_code(c))
        .filter(|block| block.len() >= BLOB)
        .find(|block| {
            let n_digits = block.bytes().filter(u8::is_ascii_digit).count();
            // A line of dashes or a very long word has few digits.
            n_digits * 40 > block.len()
        })
}
