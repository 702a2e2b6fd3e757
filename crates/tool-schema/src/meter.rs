use std::cell::Cell;

/// What is left of a check's budget, and what its steps cost.
#[derive(Debug, Clone, Copy)]
struct Meter {
    left: u64,
    price: Price,
}

/// What the steps of a check cost, by the schema that it is made against.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Price {
    /// For each value that is looked at: how many subschemas may be tried on it without asking it anything.
    pub(crate) value: u64,
    /// For each byte of text that patterns are matched against.
    pub(crate) byte: u64,
}

thread_local! {
    // The validator hands its keywords nothing but the value, and a check runs to its end on one thread.
    static METER: Cell<Meter> = const { Cell::new(Meter { left: 0, price: Price { value: 0, byte: 0 } }) };
}

/// Puts the outer check's meter back, also when the validator panics.
struct Restore(Meter);

impl Drop for Restore {
    fn drop(&mut self) {
        METER.set(self.0);
    }
}

/// Runs a check under a budget. The second value is whether the budget lasted; if not, the first says nothing.
pub(crate) fn with_budget<T>(budget: u64, price: Price, check: impl FnOnce() -> T) -> (T, bool) {
    let _restore = Restore(METER.replace(Meter { left: budget, price }));
    let result = check();
    (result, !is_exhausted())
}

/// Whether nothing is left.
pub(crate) fn is_exhausted() -> bool {
    METER.get().left == 0
}

/// Takes steps from the budget and tells whether there were as many.
pub(crate) fn charge(steps: u64) -> bool {
    let meter = METER.get();
    let left = meter.left.saturating_sub(steps);
    METER.set(Meter { left, ..meter });
    left > 0
}

/// Takes what looking at one more value costs.
pub(crate) fn charge_value() -> bool {
    charge(1 + METER.get().price.value)
}

/// Takes what looking at a text costs.
pub(crate) fn charge_text(text: &str) -> bool {
    let length = text.len() as u64;
    charge(1 + length / 32 + length.saturating_mul(METER.get().price.byte))
}
