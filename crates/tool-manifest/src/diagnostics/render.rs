use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::{Diagnostic, Location, Severity};

/// Writes a problem the way compilers do: message, place, the line itself, what to try.
pub(crate) fn render(problem: &Diagnostic, color: bool) -> String {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(problem.message.as_str()));
    if let Some(location) = &problem.location {
        let label = (!location.field.is_empty()).then(|| format!("in `{}`", location.field));
        group = group.element(snippet(location, AnnotationKind::Primary, label));
    }
    for related in &problem.related {
        let label = Some(related.message.clone());
        group = group.element(snippet(&related.location, AnnotationKind::Context, label));
    }
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let mut text = renderer.render(&[group]);
    let related = problem.related.iter().map(|related| &related.location);
    for location in problem.location.as_deref().into_iter().chain(related) {
        correct_column(location, &mut text);
    }
    text
}

/// Corrects the column of a very long line: only a part of the line is shown, and the renderer takes a column of that
/// part for one of the line.
fn correct_column(location: &Location, text: &mut String) {
    let line = &location.snippet;
    let before = line.text.get(..line.range.start).unwrap_or_default();
    let shown = before.chars().count() + 1;
    if shown != location.column {
        let wrong = format!("{}:{}:{shown}", location.file, location.line);
        *text = text.replacen(&wrong, &location.to_string(), 1);
    }
}

fn snippet(
    location: &Location,
    kind: AnnotationKind,
    label: Option<String>,
) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
    let line = &location.snippet;
    Snippet::source(line.text.as_str())
        .line_start(location.line)
        .path(location.file.as_str())
        .annotation(kind.span(line.range.clone()).label(label))
}
