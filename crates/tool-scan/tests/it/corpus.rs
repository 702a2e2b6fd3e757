//! Definitions that are well raise no findings.

use raw_json::RawJson;
use tool_scan::scan;

#[test]
#[ignore = "reads a file that is not part of the repository: TOOL_SCAN_CORPUS names it"]
fn a_corpus() {
    let path = std::env::var("TOOL_SCAN_CORPUS").unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let start = std::time::Instant::now();
    let mut n = 0;
    for line in text.lines() {
        let tool = RawJson::parse(line.to_owned()).unwrap();
        let tool = tool.get("tool").unwrap_or(tool);
        n += 1;
        for finding in scan(&tool) {
            println!(
                "{} {:?}: {finding}",
                tool.get("name").unwrap_or_default().as_str(),
                finding.kind
            );
        }
    }
    println!("{n} in {:?}, {} bytes", start.elapsed(), text.len());
}
