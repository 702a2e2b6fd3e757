use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use tool_core::Template;

use crate::ServerTransport;

/// Returns `true` if a program is a gateway with one of these files, which are canonical.
pub(crate) fn starts_gateway(transport: &ServerTransport, files: &HashSet<PathBuf>) -> bool {
    let ServerTransport::Stdio {
        command, args, cwd, ..
    } = transport
    else {
        return false;
    };
    let program = command
        .literal()
        .and_then(|program| Path::new(program).file_stem());
    let args: Vec<&str> = args.iter().filter_map(Template::literal).collect();
    if program.is_none_or(|program| program != "toolplane") || !args.contains(&"serve") {
        return false;
    }
    let directory = cwd.as_ref().and_then(Template::literal).unwrap_or_default();
    let following = args
        .windows(2)
        .filter(|pair| ["-c", "--config"].contains(&pair[0]));
    let joined = args.iter().filter_map(|arg| arg.strip_prefix("--config="));
    let mut configurations = following.map(|pair| pair[1]).chain(joined);
    configurations.any(|path| {
        let path = Path::new(directory).join(path).canonicalize();
        path.is_ok_and(|path| files.contains(&path))
    })
}
