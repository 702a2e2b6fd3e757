use mcp_wire::{LogLevel, UnknownLogLevel};

#[test]
fn levels_stand_in_order_and_are_spelled_one_way() {
    assert!(LogLevel::ALL.windows(2).all(|pair| pair[0] < pair[1]));
    for &level in LogLevel::ALL {
        assert_eq!(level.as_str().parse(), Ok(level));
        assert_eq!(level.to_string(), level.as_str());
    }
    for other in ["", "Info", "warn", "trace", " info"] {
        assert_eq!(other.parse::<LogLevel>(), Err(UnknownLogLevel), "{other}");
    }
}
