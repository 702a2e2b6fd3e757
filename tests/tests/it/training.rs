//! Checks that `toolplane-train`, the training load of profile-guided optimization, still runs.

use std::process::Command;

use crate::support::binary;

#[test]
fn the_program_serves_what_it_is_trained_by() {
    let trained = Command::new(env!("CARGO_BIN_EXE_toolplane-train"))
        .arg(binary())
        .arg("40")
        .output()
        .unwrap();
    let said = [trained.stdout, trained.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(trained.status.success(), "{said}");
    assert_eq!(said, "2320 calls were served\n");
}
