//! `toolplane usage`: figures of calls by tool, principal, server and day, and the tools that could be removed.

mod figures;
mod removable;

use std::{collections::BTreeMap, ops::RangeInclusive};

use toolplane::{
    core::{DailyUsage, DailyUsageError, UsageFigures, UsageKey, UtcDay},
    manifest::{Loaded, StoreSpec},
};

use self::figures::{Columns, Line};
use super::on_plane;
use crate::{
    command::{Format, Options, Since, Usage, UsageBy},
    config,
    error::CliError,
    exit::Exit,
    output::{Console, text},
    process::runtime::block_on,
    store::{OpenStore, required_store},
};

/// Number of days that are shown unless the command line says otherwise.
const USUAL_DAYS: u32 = 30;

/// Figures of a period.
struct Period {
    days: RangeInclusive<UtcDay>,
    figures: Vec<(UsageKey, UsageFigures)>,
}

pub(crate) fn run(options: &Options, usage: &Usage, console: Console) -> Result<Exit, CliError> {
    if usage.csv && console.format != Format::Table {
        return Err(CliError::usage("`--csv` and `--output` name two formats").with_hint("give one of them"));
    }
    if usage.unused {
        return on_plane(options, console, async |loaded, plane| {
            let store = required_store(loaded).await?;
            let period = read(loaded, &store, usage, console).await?;
            let view = plane.view(&plane.local_caller()).await;
            removable::unused(view.tools(), &period, (usage.csv, console))
        });
    }
    let loaded = config::read(config::files(options)?, console)?;
    block_on(async {
        let store = required_store(&loaded).await?;
        let period = read(&loaded, &store, usage, console).await?;
        if usage.deprecated {
            let tools = store
                .tools
                .tools()
                .await
                .map_err(toolplane::registry::PublishError::from)?;
            return removable::deprecated(&tools, &period, (usage.csv, console));
        }
        show(usage, &period, console)
    })
}

/// Reads the figures of the period.
async fn read(
    loaded: &Loaded,
    store: &OpenStore,
    usage: &Usage,
    console: Console,
) -> Result<Period, CliError> {
    let today = UtcDay::of(store.clock.wall());
    let last = usage.until.unwrap_or(today);
    let n_kept = loaded.configuration.usage.retention_days;
    let first = match usage.since.unwrap_or(Since::Days(n_kept.min(USUAL_DAYS))) {
        Since::Day(day) => day,
        Since::Days(n_days) => last.days_before(n_days.saturating_sub(1)),
    };
    if first > last {
        let message = format!("the period ends on {last}, before it begins on {first}");
        return Err(CliError::usage(message).with_hint("give `--since` an earlier day"));
    }
    let kept_from = today.days_before(n_kept.saturating_sub(1));
    if first < kept_from {
        console.warn(&format!(
            "usage is kept for {n_kept} days: calls before {kept_from} are not counted"
        ));
    }
    let days = first..=last;
    let figures = read_days(&*store.usage, days.clone()).await?;
    if figures.is_empty()
        && !loaded
            .configuration
            .usage
            .is_recorded(&loaded.configuration.store)
    {
        return Err(not_recorded(loaded));
    }
    Ok(Period { days, figures })
}

async fn read_days(
    usage: &dyn DailyUsage,
    days: RangeInclusive<UtcDay>,
) -> Result<Vec<(UsageKey, UsageFigures)>, CliError> {
    usage.read(days).await.map_err(|error: DailyUsageError| {
        CliError::new(Exit::Unavailable, "unavailable", "the usage cannot be read").with_source(&error)
    })
}

fn not_recorded(loaded: &Loaded) -> CliError {
    let error = CliError::configuration("no usage is recorded");
    error.with_hint(match loaded.configuration.store {
        StoreSpec::UserData => {
            "name a store, such as `store: {sqlite: FILE}`, or write `store: {usage: {enabled: true}}`"
        }
        _ => "remove `enabled: false` from `store.usage`",
    })
}

fn show(usage: &Usage, period: &Period, console: Console) -> Result<Exit, CliError> {
    let by = dimensions(&usage.by);
    let is_wanted = |key: &UsageKey| {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == value)
        };
        is(&usage.tool, Some(&*key.tool))
            && is(&usage.principal, Some(&*key.principal))
            && is(&usage.tenant, Some(&*key.tenant))
            && is(&usage.server, key.server.as_deref())
    };
    let wanted = period.figures.iter().filter(|(key, _)| is_wanted(key));
    let mut total = UsageFigures::default();
    let mut groups: BTreeMap<Vec<String>, UsageFigures> = BTreeMap::new();
    for (key, figures) in wanted {
        let group = by.iter().map(|by| value(*by, key)).collect();
        groups.entry(group).or_default().add(figures);
        total.add(figures);
    }
    let mut lines: Vec<Line> = groups
        .into_iter()
        .map(|(names, figures)| Line { names, figures })
        .collect();
    // Days stay in their order; anything else begins with the most calls. The sort is stable.
    if by.first() != Some(&UsageBy::Day) {
        lines.sort_by_key(|line| std::cmp::Reverse(line.figures.n_calls));
    }
    let columns = Columns { by: &by };
    if usage.csv {
        console.data(&columns.csv(&lines))?;
    } else if lines.is_empty() && console.format == Format::Table {
        console.say(&format!("no calls {}", text_of(&period.days)));
    } else {
        let records: Vec<_> = lines.iter().map(|line| columns.record(line)).collect();
        console.list(&records, |table| columns.table(table, &lines))?;
        let n_calls = usize::try_from(total.n_calls).unwrap_or(usize::MAX);
        console.say(&format!(
            "{} {}",
            text::count(n_calls, "call"),
            text_of(&period.days)
        ));
    }
    Ok(Exit::Done)
}

fn text_of(days: &RangeInclusive<UtcDay>) -> String {
    format!("from {} to {}, in UTC", days.start(), days.end())
}

/// Returns the dimensions of the lines, each once, in the order of the command line.
fn dimensions(wanted: &[UsageBy]) -> Vec<UsageBy> {
    let mut by = Vec::new();
    for dimension in wanted {
        // A version is one of a tool.
        if *dimension == UsageBy::Version && !by.contains(&UsageBy::Tool) {
            by.push(UsageBy::Tool);
        }
        if !by.contains(dimension) {
            by.push(*dimension);
        }
    }
    if by.is_empty() {
        by.push(UsageBy::Tool);
    }
    by
}

fn value(by: UsageBy, key: &UsageKey) -> String {
    match by {
        UsageBy::Day => key.day.to_string(),
        UsageBy::Tool => key.tool.to_string(),
        UsageBy::Version => key.version.as_deref().unwrap_or_default().to_owned(),
        UsageBy::Server => key.server.as_deref().unwrap_or_default().to_owned(),
        UsageBy::Principal => key.principal.to_string(),
        UsageBy::Tenant => key.tenant.to_string(),
    }
}
