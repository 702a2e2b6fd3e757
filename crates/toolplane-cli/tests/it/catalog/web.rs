//! Catalogs behind a web server.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, channel},
    },
    thread,
};

use toolplane::catalog::{Bundle, CatalogIndex};

use super::{
    STORE, catalog,
    documents::HYBRID,
    json, publisher, refused,
    signatures::{MINISIG, MINISIGN_KEY, signed_catalog},
};
use crate::binary::Place;

/// Web server for the files of a directory, which tells the paths that it was asked for.
struct Files {
    url: String,
    asked: Receiver<String>,
    /// Answers instead of files, by their paths.
    answers: Arc<Mutex<Vec<(String, String)>>>,
}

impl Files {
    fn serve(directory: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/shared", listener.local_addr().unwrap());
        let (tell, asked) = channel();
        let answers: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let own = answers.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut head = String::new();
                while reader.read_line(&mut head).unwrap_or(0) > 2 {}
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                if tell.send(path.clone()).is_err() {
                    return;
                }
                let own = own
                    .lock()
                    .unwrap()
                    .iter()
                    .find(|(known, _)| *known == path)
                    .cloned();
                let file = path.strip_prefix("/shared/").map(|name| directory.join(name));
                let answer = match (own, file.and_then(|file| fs::read(file).ok())) {
                    (Some((_, answer)), _) => answer.into_bytes(),
                    (None, Some(content)) => {
                        let mut answer = format!(
                            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                            content.len()
                        )
                        .into_bytes();
                        answer.extend(content);
                        answer
                    }
                    (None, None) => {
                        b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_vec()
                    }
                };
                // The client may have closed the connection.
                let _ = stream.write_all(&answer);
            }
        });
        Self { url, asked, answers }
    }
}

#[test]
fn a_catalog_behind_a_web_server_is_the_same() {
    let publisher = publisher();
    let files = Files::serve(catalog(&publisher));
    let place = Place::with(STORE);
    place.run(&["catalog", "add", "web", &files.url, "-q"]).data();
    assert_eq!(
        json(&place, &["catalog", "ls"])[0]["place"],
        format!("{}/", files.url)
    );
    let installed = json(&place, &["catalog", "install", "greet@1.0.0"]);
    assert_eq!(installed["digest"], installed["tool"]["digest"]);
    assert_eq!(place.run(&["call", "greet", "name=Ada"]).data().trim(), "hello");
    let asked: Vec<_> = files.asked.try_iter().collect();
    assert_eq!(
        asked,
        [
            "/shared/index.json",
            "/shared/index.json",
            "/shared/greet-1.0.0.json"
        ]
    );

    let answer = |path: &str, answer: &str| {
        files
            .answers
            .lock()
            .unwrap()
            .push((path.to_owned(), answer.to_owned()));
    };
    answer(
        "/shared/greet-1.1.0.json",
        "HTTP/1.1 302 Found\r\nconnection: close\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n",
    );
    let run = place.run(&["catalog", "show", "greet@1.1.0"]);
    refused(&run, 6, "it answered 302 Found, and redirects are not followed");
    answer(
        "/shared/files-1.0.0.server-bundle.json",
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 99999999\r\n\r\n",
    );
    refused(
        &place.run(&["catalog", "show", "files"]),
        6,
        "the connection broke",
    );
    answer(
        "/shared/greet-1.0.0.json",
        "HTTP/1.1 500 Oops\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
    refused(
        &place.run(&["catalog", "show", "greet@1.0.0"]),
        6,
        "it answered 500",
    );
    assert!(!files.asked.try_iter().any(|path| path == "/other"));
    answer(
        "/shared/index.json",
        "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
    refused(&place.run(&["catalog", "search"]), 3, "it has no `index.json`");
    let large = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}",
        " ".repeat(9 << 20)
    );
    files.answers.lock().unwrap().clear();
    answer("/shared/index.json", &large);
    refused(
        &place.run(&["catalog", "search"]),
        6,
        "it has more than 8388608 bytes",
    );
}

#[test]
fn signatures_are_read_from_a_web_server() {
    let place = Place::with(STORE);
    let catalog = signed_catalog(&place, &[("bundle.json.minisig", MINISIG)]);
    let files = Files::serve(catalog.clone());
    place.write("team.pub", MINISIGN_KEY);
    place
        .run(&[
            "catalog",
            "add",
            "web",
            &format!("{}/index.json", files.url),
            "--key-file",
            "team.pub",
        ])
        .data();
    let installed = json(&place, &["catalog", "install", "greet@1.0.0"]);
    assert_eq!(
        installed["signature"],
        json!({"checked": true, "kind": "minisign", "comment": "greet 1.0.0"})
    );
    fs::remove_file(catalog.join("bundle.json.minisig")).unwrap();
    refused(
        &place.run(&["catalog", "install", "greet@1.0.0"]),
        4,
        "it has no minisign signature",
    );
}

/// A web server has no list of its files: the index lists the documents of the registry.
#[test]
fn documents_of_the_registry_are_listed_by_an_index() {
    let place = Place::with(STORE);
    let mut entry = Bundle::parse("a.json", HYBRID.as_bytes()).unwrap().entry();
    entry.place = "servers/hybrid.json".to_owned();
    let mut index = CatalogIndex::default();
    index.add(entry).unwrap();
    let file = place.write("c/index.json", index.to_text());
    place.write("c/servers/hybrid.json", HYBRID);
    let files = Files::serve(file.parent().unwrap().to_owned());
    place.run(&["catalog", "add", "web", &files.url, "-q"]).data();
    let installed = json(
        &place,
        &[
            "catalog",
            "install",
            "io.modelcontextprotocol.anonymous/hybrid-mcp@1.5.0",
        ],
    );
    assert_eq!(installed["server"], "hybrid-mcp");
    assert_eq!(
        installed["settings"]["args"],
        json!(["-y", "@example/hybrid-mcp-server@1.5.0", "--mode=local"])
    );
    place.write("c/servers/hybrid.json", HYBRID.replace("1.5.0", "1.5.1"));
    let run = place.run(&["catalog", "show", "io.modelcontextprotocol.anonymous/hybrid-mcp"]);
    refused(&run, 7, "its version is `1.5.1`, and the index lists `1.5.0`");
}

#[test]
fn nothing_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    refused(
        &Place::with(STORE).run(&["catalog", "add", "web", &url]),
        6,
        "it cannot be reached",
    );
}
