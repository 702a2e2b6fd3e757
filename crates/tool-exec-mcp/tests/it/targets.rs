//! Targets that are not plain: a file with variables, and a server that is refused.

use std::{fs, path::Path, sync::Arc};

use tool_core::{
    BoxFuture, NoSecrets, Provider, Reference, Secret, SecretError, Secrets, SourceState, Template,
};
use tool_exec_mcp::{McpServer, ServerSettings, ServerTarget, StdioTarget};

/// Files of this machine.
struct Files;

impl Secrets for Files {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async {
            assert_eq!(reference.provider, Provider::File);
            Ok(fs::read_to_string(&reference.name).ok().map(Secret::new))
        })
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        Ok(Path::new(&reference.name).exists())
    }
}

fn template(text: &str) -> Template {
    Template::parse(text).unwrap()
}

/// Loads a server and returns the reason of its failure.
async fn failure(target: impl Into<ServerTarget>, secrets: Arc<dyn Secrets>) -> String {
    let server = McpServer::new(ServerSettings::new("one", target), secrets);
    let source = server.source();
    source.load().await;
    let state = source.status().state;
    server.shutdown().await;
    match state {
        SourceState::Failed(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_refused_server_says_why() {
    let target = ServerTarget::Refused("its file wants the impossible".to_owned());
    let reason = failure(target.clone(), Arc::new(NoSecrets)).await;
    assert!(reason.contains("its file wants the impossible"), "{reason}");
    let source = McpServer::new(ServerSettings::new("one", target), Arc::new(NoSecrets)).source();
    source.load().await;
    assert_eq!(source.status().retry_in, None, "nothing is tried again");
}

#[tokio::test]
async fn variables_of_a_file_reach_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let (file, seen) = (folder.path().join(".env"), folder.path().join("seen"));
    fs::write(&file, "# Keys\nKEY='a $b'\nNAME=of the file\n").unwrap();
    let script = format!("echo \"$KEY-$NAME\" >> {}", seen.display());
    let target = StdioTarget::new(template("sh"))
        .args([template("-c"), template(&script.replace('$', "$$"))])
        .env("NAME", template("of the settings"))
        .env_file(template(file.to_str().unwrap()));
    failure(target.clone(), Arc::new(Files)).await;
    let seen = fs::read_to_string(&seen).unwrap();
    assert_eq!(seen.lines().next(), Some("a $b-of the settings"));

    fs::remove_file(&file).unwrap();
    let reason = failure(target, Arc::new(Files)).await;
    assert!(
        reason.contains(".env") && reason.contains("cannot be read"),
        "{reason}"
    );
}
