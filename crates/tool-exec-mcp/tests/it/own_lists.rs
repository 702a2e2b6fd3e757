//! The lists of connections that are kept for single clients.

use std::{
    slice,
    sync::{Arc, Mutex},
};

use serde_json::json;
use tool_core::{Caller, ClientCapabilities, ClientIdentity, ClientKey, Feature, Pattern, Source, Update};
use tool_exec_mcp::{Isolation, McpServer};

use crate::{
    client::{Client, asker, until},
    fixture::{Fixture, NoSecrets, load, tool},
};

const ASKABLE: &str = r#"{"elicitation":{}}"#;

fn server(fixture: &Fixture, isolation: Isolation) -> Arc<McpServer> {
    let mut settings = fixture.settings("");
    settings.isolation = isolation;
    settings.rename = [("grown".to_owned(), "renamed".to_owned())].into();
    settings.exclude = vec![Pattern::new("secret*")];
    McpServer::new(settings, Arc::new(NoSecrets))
}

/// The identity of a client of a caller.
pub(crate) fn identity(key: &ClientKey, declared: &str, caller: &Caller) -> ClientIdentity {
    let declared = raw_json::RawJson::parse(declared.to_owned()).unwrap();
    ClientIdentity::new(None, Some(key), ClientCapabilities::from_json(&declared), caller)
}

fn session(name: &str) -> ClientIdentity {
    let key = ClientKey::Session(name.into());
    identity(&key, ASKABLE, &Caller::local())
}

/// The names of the tools that a client sees; `None` where they are the shared ones.
fn tools(source: &Arc<dyn Source>, client: &ClientIdentity) -> Option<Vec<String>> {
    let lists = source.snapshot_for(client)?;
    Some(lists.tools.iter().map(|tool| tool.name.to_string()).collect())
}

/// A client, and its lists that changed.
type Told = (ClientKey, Vec<Feature>);

/// What a source says of the lists of single clients.
fn told(source: &Arc<dyn Source>) -> Arc<Mutex<Vec<Told>>> {
    let told = Arc::<Mutex<Vec<_>>>::default();
    let keep = told.clone();
    source.on_update(Arc::new(move |update| {
        if let Update::ClientLists {
            source,
            clients,
            changed,
        } = update
            && !changed.is_empty()
        {
            assert_eq!(&**source, "box");
            let key = clients.identity.key.clone();
            keep.lock().unwrap().push((key, changed.clone()));
        }
    }));
    told
}

/// Has the server say over a client's connection that its list of tools has changed.
async fn changes(client: &Arc<Client>, server: &Arc<McpServer>) {
    let mut call = client.call(server, "changes", json!({"change": "tools"}));
    call.make().await.unwrap();
}

#[tokio::test]
async fn a_change_on_a_clients_own_connection_is_its_alone() {
    for isolation in [Isolation::Auto, Isolation::Session] {
        let fixture = Fixture::new(&[tool("changes")]);
        let server = server(&fixture, isolation);
        let source = server.source();
        let told = told(&source);
        load(&server).await;
        let [anna, otto] = ["anna", "otto"].map(|name| Client::session(name, ASKABLE));
        // Both have connections, whose lists are those of everyone.
        for client in [&anna, &otto] {
            client.call(&server, "other", json!({})).make().await.unwrap();
        }
        for name in ["anna", "otto"] {
            source.refresh_for(&session(name)).await;
            assert_eq!(tools(&source, &session(name)), None);
        }
        fixture.lists(&[tool("changes"), tool("grown"), tool("secret")]);
        changes(&anna, &server).await;
        source.refresh_for(&session("anna")).await;
        let grown = ["box__changes", "box__renamed"].map(str::to_owned);
        assert_eq!(
            tools(&source, &session("anna")),
            Some(grown.to_vec()),
            "{isolation:?}"
        );
        assert_eq!(tools(&source, &session("otto")), None);
        assert_eq!(
            source.snapshot().tools.len(),
            1,
            "nobody told the shared connection"
        );
        let only = (ClientKey::Session("anna".into()), vec![Feature::Tool]);
        assert_eq!(*told.lock().unwrap(), slice::from_ref(&only));
        // What is removed there is gone.
        fixture.lists(&[tool("grown")]);
        changes(&anna, &server).await;
        source.refresh_for(&session("anna")).await;
        assert_eq!(
            tools(&source, &session("anna")),
            Some(vec!["box__renamed".to_owned()])
        );
        // With the connection go its lists.
        server.release_client(&ClientKey::Session("anna".into()));
        until(|| tools(&source, &session("anna")).is_none()).await;
        assert_eq!(*told.lock().unwrap(), [only.clone(), only.clone(), only]);
        server.shutdown().await;
    }
}

#[tokio::test]
async fn lists_are_of_one_principal_tenant_and_set_of_capabilities() {
    let fixture = Fixture::new(&[tool("changes")]);
    for isolation in [Isolation::Auto, Isolation::Session, Isolation::Principal] {
        fixture.lists(&[tool("changes")]);
        let server = server(&fixture, isolation);
        let source = server.source();
        load(&server).await;
        fixture.lists(&[tool("grown")]);
        let client = Client::session("anna", ASKABLE);
        client.call(&server, "other", json!({})).make().await.unwrap();
        until(|| tools(&source, &session("anna")).is_some()).await;
        let mut other_tenant = Caller::local();
        other_tenant.tenant = "other".into();
        let key = || ClientKey::Session("anna".into());
        for other in [
            identity(&key(), ASKABLE, &Caller::new("otto")),
            identity(&key(), ASKABLE, &other_tenant),
            identity(&key(), r#"{"roots":{}}"#, &Caller::local()),
            identity(&key(), "{}", &Caller::local()),
        ] {
            assert_eq!(tools(&source, &other), None, "{isolation:?}: {other:?}");
        }
        // Only a principal's connection serves all its clients.
        let same_principal = tools(&source, &session("otto"));
        assert_eq!(same_principal.is_some(), isolation == Isolation::Principal);
        server.shutdown().await;
    }
}

#[tokio::test]
async fn lists_of_a_connection_that_died_are_read_again_when_it_is_opened() {
    let fixture = Fixture::new(&[tool("changes")]);
    let server = server(&fixture, Isolation::Auto);
    let source = server.source();
    load(&server).await;
    let client = Client::session("anna", ASKABLE);
    fixture.lists(&[tool("grown")]);
    client.call(&server, "other", json!({})).make().await.unwrap();
    until(|| tools(&source, &session("anna")).is_some()).await;
    client.call(&server, "exit", json!({})).make().await.unwrap_err();
    until(|| tools(&source, &session("anna")).is_none()).await;
    until(|| server.n_dedicated_connections_in_use() == 0).await;
    loop {
        if client.call(&server, "other", json!({})).make().await.is_ok() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    until(|| tools(&source, &session("anna")).is_some()).await;
    server.shutdown().await;
}

#[tokio::test]
async fn clients_that_share_have_no_lists_of_their_own() {
    let fixture = Fixture::new(&[tool("changes")]);
    for (isolation, declared) in [(Isolation::Shared, ASKABLE), (Isolation::Auto, "{}")] {
        let server = server(&fixture, isolation);
        let source = server.source();
        load(&server).await;
        let client = Client::session("anna", declared);
        client.call(&server, "other", json!({})).make().await.unwrap();
        let key = ClientKey::Session("anna".into());
        let client = identity(&key, declared, &Caller::local());
        source.refresh_for(&client).await;
        assert_eq!((tools(&source, &client), server.n_dedicated_connections()), (None, 0));
        server.shutdown().await;
    }
}

#[tokio::test]
async fn a_call_in_which_nobody_is_asked_goes_to_the_connection_of_its_client() {
    let fixture = Fixture::new(&[]);
    let server = McpServer::new(asker(&fixture, ""), Arc::new(NoSecrets));
    let client = Client::session("anna", ASKABLE);
    let process = |silent: bool| {
        let mut call = client.call(&server, "pid", json!({}));
        if silent {
            call.cx.origin.ask = None;
            call.cx.origin.client = Some(ClientKey::Session("anna".into()));
            call.cx.origin.client_capabilities = session("anna").capabilities;
        }
        async move { call.make().await.unwrap().raw().get("pid").unwrap() }
    };
    let shared = process(true).await;
    assert_eq!(server.n_dedicated_connections(), 0, "none is opened for it");
    let own = process(false).await;
    assert_ne!(own, shared);
    assert_eq!(process(true).await, own);
    server.shutdown().await;
}
