use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use parking_lot::Mutex;
use tool_core::{BoxFuture, DailyUsage, DailyUsageError, UsageFigures, UsageKey, UtcDay};

/// Usage in memory: it ends with the process. Clones share it.
///
/// # Examples
/// ```
/// use tool_core::{DailyUsage, UsageFigures, UsageKey, UtcDay};
/// use tool_observe::MemoryUsage;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tool_core::DailyUsageError> {
/// let usage = MemoryUsage::default();
/// let today = UtcDay::parse("2026-11-29").expect("a day");
/// let mut figures = UsageFigures::default();
/// figures.n_calls = 1;
/// usage.add(&[(UsageKey::new(today, "default", "ada", "echo"), figures)]).await?;
/// assert_eq!(usage.read(today..=today).await?[0].1.n_calls, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryUsage(Arc<Mutex<BTreeMap<UsageKey, UsageFigures>>>);

impl DailyUsage for MemoryUsage {
    fn add<'a>(
        &'a self,
        figures: &'a [(UsageKey, UsageFigures)],
    ) -> BoxFuture<'a, Result<(), DailyUsageError>> {
        Box::pin(async move {
            let mut all = self.0.lock();
            for (key, figures) in figures {
                all.entry(key.clone()).or_default().add(figures);
            }
            Ok(())
        })
    }

    fn read(
        &self,
        days: RangeInclusive<UtcDay>,
    ) -> BoxFuture<'_, Result<Vec<(UsageKey, UsageFigures)>, DailyUsageError>> {
        Box::pin(async move {
            let all = self.0.lock();
            let of_days = all.iter().filter(|(key, _)| days.contains(&key.day));
            Ok(of_days
                .map(|(key, figures)| (key.clone(), figures.clone()))
                .collect())
        })
    }

    fn forget(&self, before: UtcDay) -> BoxFuture<'_, Result<(), DailyUsageError>> {
        Box::pin(async move {
            self.0.lock().retain(|key, _| key.day >= before);
            Ok(())
        })
    }
}
