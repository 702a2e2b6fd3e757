use std::pin::Pin;

/// A boxed future, for the places where a trait object is needed.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
