//! Tests that every store of tools must pass.
//!
//! [`store_tests!`] makes one test function of each, for a store that an async function opens.

pub mod store;
pub mod tokens;

pub use tokio;

/// Result of opening a store for one test: a value to keep alive, and two handles to one new store.
pub trait OpenedStores<G, F, S> {
    /// Returns the value and the handles; `None` if this machine cannot run the test, which was reported.
    fn into_handles(self) -> Option<(G, F, S)>;
}

impl<G, F, S> OpenedStores<G, F, S> for (G, F, S) {
    fn into_handles(self) -> Option<(G, F, S)> {
        Some(self)
    }
}

impl<G, F, S> OpenedStores<G, F, S> for Option<(G, F, S)> {
    fn into_handles(self) -> Self {
        self
    }
}

/// Makes the tests of a [`Store`](tool_registry::Store). `$open` is an async function without arguments whose result is
/// [`OpenedStores`].
#[macro_export]
macro_rules! store_tests {
    ($open:path) => {
        $crate::store_tests!(@each $open, store: [
            a_new_store_is_empty,
            a_version_comes_back_as_it_was_stored,
            an_outdated_change_is_a_conflict_and_changes_nothing,
            of_two_writers_one_wins,
            a_change_that_fails_in_the_middle_changes_nothing,
            a_published_version_is_not_replaced,
            a_draft_is_replaced_and_removed,
            every_state_comes_back_with_its_details,
            the_latest_version_goes_back_through_its_history,
            changes_hold_only_what_changed,
            a_waiter_learns_of_the_change_of_another_handle,
            aliases_and_servers_are_set_and_removed,
        ]);
    };
    (@each $open:path, $module:ident: [$($name:ident),* $(,)?]) => {
        $(
            #[$crate::tokio::test(flavor = "multi_thread")]
            async fn $name() {
                if let Some((guard, first, second)) = $crate::OpenedStores::into_handles($open().await) {
                    $crate::$module::$name(first, second).await;
                    drop(guard);
                }
            }
        )*
    };
}

/// Makes the tests of [`Tokens`](tool_core::Tokens): see [`store_tests!`].
#[macro_export]
macro_rules! token_tests {
    ($open:path) => {
        $crate::store_tests!(@each $open, tokens: [
            a_token_comes_back_as_it_was_stored,
            an_id_is_stored_once,
            a_revocation_counts_for_every_handle_and_keeps_its_first_time,
        ]);
    };
}
