use std::cell::Cell;

/// Remaining budget of a check, and the prices of its steps.
#[derive(Debug, Clone, Copy)]
struct Meter {
    left: u64,
    price: Price,
}

/// Prices of the steps of a check, which depend on the schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Price {
    /// Price of each visited value: the number of subschemas that may be tried on it without reading it.
    pub(crate) value: u64,
    /// Price of each byte of text that patterns are matched against.
    pub(crate) byte: u64,
}

thread_local! {
    // Thread-local, since the validator passes nothing but the value to its keywords, and a check runs on one thread.
    static METER: Cell<Meter> = const { Cell::new(Meter { left: 0, price: Price { value: 0, byte: 0 } }) };
}

/// Guard that restores the outer check's meter, also if the validator panics.
struct Restore(Meter);

impl Drop for Restore {
    fn drop(&mut self) {
        METER.set(self.0);
    }
}

/// Runs a check with a budget. The second value is `false` if the budget was exhausted; the first one is then meaningless.
pub(crate) fn with_budget<T>(budget: u64, price: Price, check: impl FnOnce() -> T) -> (T, bool) {
    let _restore = Restore(METER.replace(Meter { left: budget, price }));
    let result = check();
    (result, !is_exhausted())
}

/// Returns `true` if the budget is exhausted.
pub(crate) fn is_exhausted() -> bool {
    METER.get().left == 0
}

/// Takes steps from the budget. Returns `false` if it is exhausted.
pub(crate) fn charge(steps: u64) -> bool {
    let meter = METER.get();
    let left = meter.left.saturating_sub(steps);
    METER.set(Meter { left, ..meter });
    left > 0
}

/// Charges for visiting a value.
pub(crate) fn charge_value() -> bool {
    charge(1 + METER.get().price.value)
}

/// Charges for reading a text.
pub(crate) fn charge_text(text: &str) -> bool {
    let length = text.len() as u64;
    charge(1 + length / 32 + length.saturating_mul(METER.get().price.byte))
}
