use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use tool_core::ToolState;

#[test]
fn each_layer_has_its_own_slot_made_once() {
    #[derive(Debug)]
    struct Breaker(AtomicU32);
    struct Limiter(&'static str);

    let state = ToolState::default();
    state
        .get_or_init(|| Breaker(AtomicU32::new(0)))
        .0
        .fetch_add(1, Ordering::SeqCst);
    let again: Arc<Breaker> = state.get_or_init(|| unreachable!("it is there already"));
    assert_eq!(again.0.load(Ordering::SeqCst), 1);
    assert_eq!(state.get_or_init(|| Limiter("other")).0, "other");
}
