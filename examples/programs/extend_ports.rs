//! Storage of the program itself: secrets, idempotency keys and approvals. Lists stand for a database.
//!
//! Run it with `cargo run -p toolplane-examples --example extend-ports`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use toolplane::{
    CallRequest, Toolplane,
    core::{
        ApprovalRecord, ApprovalState, Approvals, ApprovalsError, BoxFuture, CallEnd, Claim, ClaimResult,
        CorrelationId, Instant, Ledger, LedgerEntry, LedgerState, Outcome, Reference, Secret, SecretError,
        Secrets, ToolError,
    },
    policy::ApprovalVerdict,
    tokio::time::sleep,
};

const CONFIGURATION: &str = r#"
tools:
  pay:
    description: Pays an invoice.
    executor: {kind: mock, result: paid}
  balance:
    description: Says what is on the account.
    executor:
      kind: http
      url: http://127.0.0.1:1/balance
      allow_private: true
      headers: {authorization: "Bearer ${secret:bank}"}
policy:
  approval: {required: [pay]}
"#;

// ANCHOR: secrets
/// Resolver of the references `${secret:...}`. It is asked for every use, so that a renewed value takes effect at once.
struct Vault;

impl Secrets for Vault {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move {
            println!("the vault is asked for `{}`", reference.name);
            Ok((reference.name == "bank").then(|| Secret::new("a-token-of-the-bank")))
        })
    }

    /// Without I/O: whether there is a value, as far as is known before the first call.
    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        Ok(reference.name == "bank")
    }
}
// ANCHOR_END: secrets

// ANCHOR: ledger
/// Ledger of calls with an idempotency key, and of calls whose outcome is unknown.
#[derive(Default)]
struct Entries(Mutex<Vec<(Claim, LedgerState)>>);

impl Entries {
    fn with<T>(&self, read: impl FnOnce(&mut Vec<(Claim, LedgerState)>) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn entry(claim: &Claim, state: &LedgerState) -> LedgerEntry {
    LedgerEntry::new(claim, SystemTime::UNIX_EPOCH, state.clone())
}

impl Ledger for Entries {
    /// One transaction in a database: of two claims of a key at the same time, one is granted.
    fn claim<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<ClaimResult, ToolError>> {
        let is_same = |known: &Claim| {
            (&known.key, &known.principal, &known.tenant) == (&claim.key, &claim.principal, &claim.tenant)
        };
        let claimed = self.with(|entries| {
            let Some((known, state)) = entries.iter_mut().find(|(known, _)| is_same(known)) else {
                entries.push((claim.clone(), LedgerState::Running));
                return ClaimResult::Granted(claim.id);
            };
            if (&known.tool, known.arguments) != (&claim.tool, claim.arguments) {
                return ClaimResult::Conflict;
            }
            match state {
                // Claimed again after this.
                LedgerState::Running => ClaimResult::Running(Box::pin(sleep(Duration::from_millis(50)))),
                LedgerState::Unknown(_) if !claim.may_repeat => {
                    ClaimResult::Ended(Box::new(entry(known, state)))
                }
                // It waited for an approval, or for another round.
                LedgerState::Open | LedgerState::Unknown(_) => {
                    *state = LedgerState::Running;
                    ClaimResult::Granted(known.id)
                }
                _ => ClaimResult::Ended(Box::new(entry(known, state))),
            }
        });
        Box::pin(async { Ok(claimed) })
    }

    /// Returns at once: it is also called when a call is cancelled. Slow storage continues in a task of its own.
    fn settle(&self, id: CorrelationId, end: CallEnd) {
        self.with(|entries| match end {
            CallEnd::Free => entries.retain(|(claim, _)| claim.id != id),
            end => {
                let known = entries.iter_mut().find(|(claim, _)| claim.id == id);
                let Some((_, state)) = known else { return };
                *state = match end {
                    CallEnd::Answered(reply) => LedgerState::Answered(reply),
                    CallEnd::Failed(error) => LedgerState::Failed(error),
                    CallEnd::Unknown(error) => LedgerState::Unknown(error),
                    CallEnd::Open | CallEnd::Free => LedgerState::Open,
                };
            }
        });
    }

    fn record(&self, claim: Claim, unknown: ToolError) {
        self.with(|entries| entries.push((claim.unkeyed(), LedgerState::Unknown(unknown))));
    }

    fn find(&self, id: CorrelationId) -> BoxFuture<'_, Option<LedgerEntry>> {
        let found = self.with(|entries| {
            entries
                .iter()
                .map(|(claim, state)| entry(claim, state))
                .find(|entry| entry.id == id)
        });
        Box::pin(async { found })
    }

    fn unknown(&self, limit: usize) -> BoxFuture<'_, Vec<LedgerEntry>> {
        let is_unknown = |entry: &LedgerEntry| matches!(entry.state, LedgerState::Unknown(_));
        let found = self.with(|entries| {
            let latest_first = entries.iter().rev().map(|(claim, state)| entry(claim, state));
            latest_first.filter(is_unknown).take(limit).collect()
        });
        Box::pin(async { found })
    }
}
// ANCHOR_END: ledger

// ANCHOR: approvals
/// Storage of approvals.
#[derive(Default)]
struct Requests(Mutex<Vec<ApprovalRecord>>);

impl Requests {
    fn with<T>(&self, read: impl FnOnce(&mut Vec<ApprovalRecord>) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Approvals for Requests {
    /// A call that is asked for again waits for the same decision.
    fn ask(
        &self,
        approval: ApprovalRecord,
        now: Instant,
    ) -> BoxFuture<'_, Result<ApprovalRecord, ApprovalsError>> {
        let stored = self.with(|all| {
            let is_same = |known: &&ApprovalRecord| {
                known.call.is_same(&approval.call) && known.state.is_open() && known.expiry > now
            };
            if let Some(same) = all.iter().find(is_same) {
                return same.clone();
            }
            all.push(approval.clone());
            approval
        });
        Box::pin(async { Ok(stored) })
    }

    fn get<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<Option<ApprovalRecord>, ApprovalsError>> {
        let found = self.with(|all| all.iter().find(|known| &*known.handle == handle).cloned());
        Box::pin(async { Ok(found) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<ApprovalRecord>, ApprovalsError>> {
        let all = self.with(|all| all.clone());
        Box::pin(async { Ok(all) })
    }

    /// Compare and swap: of two decisions at the same time, one counts.
    fn replace<'a>(
        &'a self,
        known: &'a ApprovalState,
        new: ApprovalRecord,
    ) -> BoxFuture<'a, Result<bool, ApprovalsError>> {
        let is_replaced = self.with(|all| {
            let is_known =
                |stored: &&mut ApprovalRecord| stored.handle == new.handle && stored.state == *known;
            let stored = all.iter_mut().find(is_known);
            stored.map(|stored| *stored = new.clone()).is_some()
        });
        Box::pin(async move { Ok(is_replaced) })
    }
}
// ANCHOR_END: approvals

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // ANCHOR: build
    let plane = Toolplane::builder()
        .yaml(CONFIGURATION)?
        .secrets(Arc::new(Vault))
        .ledger(Arc::new(Entries::default()))
        .approvals(Arc::new(Requests::default()))
        .build()?;
    // ANCHOR_END: build

    let pay = CallRequest::new("pay").idempotency_key("invoice-7");
    let Outcome::Pending(pending) = plane.call(pay.clone()).await? else {
        return Err("a payment needs an approval".into());
    };
    println!("it waits: {}", pending.reason);
    let desk = plane.approvals();
    desk.decide(&pending.handle, ApprovalVerdict::Approve, "ann")
        .await?;
    let approved = pay.approval(&pending.handle);
    println!("{}", plane.call(approved.clone()).await?.into_reply()?.text());
    // The key is known: the ledger answers.
    println!("{}", plane.call(approved).await?.into_reply()?.text());

    // Nobody listens there, but the token was resolved.
    match plane.call(CallRequest::new("balance")).await {
        Err(error) => println!("balance: {error}"),
        Ok(_) => return Err("a bank answered".into()),
    }
    Ok(())
}
