/// Settings of a layer, which wrap a callable into the layer's service. A closure from the inner callable to the service
/// is a layer as well.
///
/// # Examples
/// ```
/// use tool_core::{CallContext, Invoke, Layers, Outcome, ToolError, invoke_fn, serde_json::json};
///
/// /// Service that counts the bytes of arguments.
/// struct CountBytes<S>(S);
///
/// impl<S: Invoke> Invoke for CountBytes<S> {
///     async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
///         let n_bytes = cx.arguments.raw().len();
///         cx.explain("count bytes", || format!("{n_bytes} bytes"));
///         self.0.invoke(cx).await
///     }
/// }
///
/// let backend = invoke_fn(|_| async { Ok::<_, ToolError>(json!("done")) });
/// let stack = Layers::outermost(CountBytes).around(backend);
/// # let _ = stack;
/// ```
pub trait Layer<S> {
    /// Service of the layer around `S`.
    type Invoke;

    /// Wraps `inner` in the layer.
    fn layer(self, inner: S) -> Self::Invoke;
}

/// Layer that explains its decisions under a name.
pub trait NamedLayer {
    /// Name of the layer in explanations: see [`CallContext::explain`](crate::CallContext::explain).
    const NAME: &'static str;

    /// Appends the name of this layer; for nested layers, the names of all of them, outermost first.
    fn push_names(names: &mut Vec<&'static str>) {
        names.push(Self::NAME);
    }
}

/// List of layers, outermost first: a stack reads in the order in which a call passes it.
///
/// # Examples
/// ```
/// # use tool_core::{Layer, Layers};
/// # struct Log; impl<S> Layer<S> for Log { type Invoke = S; fn layer(self, inner: S) -> S { inner } }
/// # struct Retry; impl<S> Layer<S> for Retry { type Invoke = S; fn layer(self, inner: S) -> S { inner } }
/// # struct Executor;
/// let stack = Layers::outermost(Log).then(Retry).around(Executor);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Layers<L>(L);

/// Two layers, one inside the other: the type that [`Layers::then`] builds.
#[derive(Debug, Clone, Copy)]
pub struct Nested<Outer, Inner> {
    outer: Outer,
    inner: Inner,
}

impl<L> Layers<L> {
    /// Starts a list with its outermost layer.
    #[must_use]
    pub fn outermost(layer: L) -> Self {
        Self(layer)
    }

    /// Adds the next inner layer.
    #[must_use]
    pub fn then<M>(self, layer: M) -> Layers<Nested<L, M>> {
        Layers(Nested {
            outer: self.0,
            inner: layer,
        })
    }

    /// Returns the names of the layers, outermost first.
    #[must_use]
    pub fn names() -> Vec<&'static str>
    where
        L: NamedLayer,
    {
        let mut names = Vec::new();
        L::push_names(&mut names);
        names
    }

    /// Wraps the innermost service in all layers.
    #[must_use]
    pub fn around<S>(self, innermost: S) -> L::Invoke
    where
        L: Layer<S>,
    {
        self.0.layer(innermost)
    }
}

impl<S, Outer, Inner> Layer<S> for Nested<Outer, Inner>
where
    Inner: Layer<S>,
    Outer: Layer<Inner::Invoke>,
{
    type Invoke = Outer::Invoke;

    fn layer(self, innermost: S) -> Self::Invoke {
        self.outer.layer(self.inner.layer(innermost))
    }
}

impl<Outer: NamedLayer, Inner: NamedLayer> NamedLayer for Nested<Outer, Inner> {
    const NAME: &'static str = Outer::NAME;

    fn push_names(names: &mut Vec<&'static str>) {
        Outer::push_names(names);
        Inner::push_names(names);
    }
}

impl<S, F, I> Layer<S> for F
where
    F: FnOnce(S) -> I,
{
    type Invoke = I;

    fn layer(self, inner: S) -> I {
        self(inner)
    }
}
