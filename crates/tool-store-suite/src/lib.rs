//! Tests that every store of tools must pass.
//!
//! [`store_tests!`] makes one test function of each, for a store that an async function opens.

pub mod approvals;
pub mod flows;
pub mod kill;
pub mod ledger;
pub mod list_state;
pub mod pins;
pub mod publications;
pub mod store;
pub mod texts;
pub mod tokens;
pub mod usage;

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
            changes_of_several_tools_are_made_together,
            a_published_version_is_not_replaced,
            a_draft_is_replaced_and_removed,
            what_operators_allow_an_agents_version_comes_back,
            versions_of_an_agent_are_found_by_their_author,
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

/// Makes the tests of [`Flows`](tool_core::Flows) that outlive the process: see [`store_tests!`]. The two handles belong to
/// different gateways.
#[macro_export]
macro_rules! flow_tests {
    ($open:path) => {
        $crate::store_tests!(@each $open, flows: [
            a_run_that_waits_is_claimed_once,
            a_run_belongs_to_the_gateway_that_runs_it,
            of_many_claims_one_succeeds,
        ]);
    };
}

/// Makes the tests of [`DailyUsage`](tool_core::DailyUsage): see [`store_tests!`].
#[macro_export]
macro_rules! usage_tests {
    ($open:path) => {
        $crate::store_tests!(@each $open, usage: [
            figures_are_added_up_for_each_key,
            nothing_of_two_gateways_is_lost,
            old_days_are_forgotten,
        ]);
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

/// Makes the tests of [`Approvals`](tool_core::Approvals): see [`store_tests!`]. The clock is that of the system.
#[macro_export]
macro_rules! approval_tests {
    ($open:path) => {
        $crate::store_tests!(@each $open, approvals: [
            an_approval_comes_back_as_it_was_asked_for,
            an_open_approval_is_not_asked_for_twice,
            requests_at_once_share_one_approval,
            two_questions_to_clients_are_two_approvals,
            a_state_is_replaced_only_if_it_is_the_known_one,
            one_of_many_claims_succeeds,
            an_expired_approval_is_forgotten,
            the_number_of_approvals_is_limited,
        ]);
    };
}

/// Makes the tests of a [`Ledger`](tool_core::Ledger): see [`store_tests!`]. The clock is that of the system.
#[macro_export]
macro_rules! ledger_tests {
    ($open:path) => {
        $crate::store_tests!(@each $open, ledger: [
            one_of_many_claims_is_granted,
            a_reply_comes_back_as_it_was,
            a_failure_comes_back_as_it_was,
            a_key_belongs_to_one_call_of_one_principal,
            a_freed_key_is_granted_again,
            an_open_call_continues_with_its_entry,
            an_unknown_outcome_keeps_its_key_unless_the_call_may_be_repeated,
            a_waiting_claim_learns_of_the_end,
            unknown_outcomes_are_listed_and_found,
            an_entry_is_forgotten_after_its_time,
        ]);
    };
}

/// Makes the tests of [`Pins`](tool_registry::Pins): see [`store_tests!`].
#[macro_export]
macro_rules! pin_tests {
    ($open:path) => {
        $crate::store_tests!(@each $open, pins: [
            an_accepted_definition_replaces_its_pin,
            a_first_use_never_replaces_a_pin,
            definitions_of_first_use_are_flushed,
            many_pins_come_back_as_they_were_stored,
        ]);
    };
}

/// Makes the tests of [`KeptTexts`](tool_core::KeptTexts): see [`store_tests!`].
#[macro_export]
macro_rules! text_tests {
    ($open:path) => {
        $crate::store_tests!(@each $open, texts: [
            many_texts_are_loaded_in_the_order_of_their_keys,
            texts_are_saved_replaced_and_forgotten,
        ]);
    };
}
