use std::fmt::{self, Display};

use super::percentile;
use crate::checks::source::SourceFile;

/// Lengths of files, in lines without test code.
#[derive(Debug, Default)]
pub(super) struct FileSizes(Vec<usize>);

/// Lengths of functions, in lines.
#[derive(Debug, Default)]
pub(super) struct FunctionSizes(Vec<usize>);

impl FileSizes {
    pub(super) fn add(&mut self, source: &SourceFile) {
        self.0.push(source.n_lines());
    }
}

impl FunctionSizes {
    pub(super) fn add(&mut self, source: &SourceFile) {
        let functions = source.functions();
        self.0
            .extend(functions.iter().map(|function| function.lines.len()));
    }
}

impl Display for FileSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_percentiles(f, "files", &self.0, &[50, 90])
    }
}

impl Display for FunctionSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_percentiles(f, "functions", &self.0, &[50, 90, 99])
    }
}

fn write_percentiles(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    sizes: &[usize],
    percents: &[usize],
) -> fmt::Result {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    write!(f, "{what}: {}; lines", sorted.len())?;
    for percent in percents {
        write!(f, " p{percent} {},", percentile(&sorted, *percent))?;
    }
    write!(f, " max {}", sorted.last().copied().unwrap_or_default())
}
