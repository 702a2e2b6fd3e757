use std::future::pending;

use raw_json::RawJson;
use tokio::sync::oneshot;
use url::Url;

/// A callback URL, and what its API sends to it.
#[derive(Debug)]
pub(crate) struct Callback {
    pub url: Url,
    receiver: Option<oneshot::Receiver<RawJson>>,
    answer: Option<RawJson>,
}

impl Callback {
    pub(super) fn new(url: Url, receiver: oneshot::Receiver<RawJson>) -> Self {
        Self {
            url,
            receiver: Some(receiver),
            answer: None,
        }
    }

    /// Waits until the API has called back. Never returns after the answer was taken.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(super) async fn wait(&mut self) {
        if self.answer.is_some() {
            return;
        }
        if let Some(receiver) = &mut self.receiver {
            let answer = receiver.await;
            self.receiver = None;
            if let Ok(answer) = answer {
                self.answer = Some(answer);
                return;
            }
        }
        pending::<()>().await;
    }

    /// Takes the answer of the API if it has called back.
    pub(super) fn take(&mut self) -> Option<RawJson> {
        if let Some(Ok(answer)) = self.receiver.as_mut().map(oneshot::Receiver::try_recv) {
            self.receiver = None;
            self.answer = Some(answer);
        }
        self.answer.take()
    }
}
