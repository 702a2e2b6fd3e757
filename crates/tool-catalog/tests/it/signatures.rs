//! Signatures, all made by other programs than the libraries that check them: see `tests/fixtures/README.md`.

use tool_catalog::{Bundle, CatalogErrorKind, CatalogKey, EntrySignature, SignatureCheck, SignatureFile};

const BUNDLE: &[u8] = include_bytes!("../fixtures/signed/bundle.json");
const MINISIGN_KEY: &str = include_str!("../fixtures/signed/minisign.pub");
const ED25519_KEY: &str = include_str!("../fixtures/signed/ed25519.pem");
const PREHASHED: &str = include_str!("../fixtures/signed/bundle.json.minisig");
const LEGACY: &str = include_str!("../fixtures/signed/bundle.json.legacy.minisig");
const OTHER: &str = include_str!("../fixtures/signed/other.minisig");
const RAW: &str = include_str!("../fixtures/signed/bundle.json.sig");

fn key(text: &str) -> CatalogKey {
    text.parse().unwrap()
}

/// Every change of one bit of the content, and some of the signature.
fn refuses_changes(key: &CatalogKey, signature: &[u8]) {
    for at in 0..BUNDLE.len() {
        let mut changed = BUNDLE.to_vec();
        changed[at] ^= 1 << (at % 8);
        let error = key.verify("bundle.json", &changed, signature).unwrap_err();
        assert_eq!(error.kind(), CatalogErrorKind::Signature, "{at}");
    }
    for at in 0..signature.len() {
        let mut changed = signature.to_vec();
        // A letter stays a letter, so that most changes are of the signature and not of its form.
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let is_comment = signature[..at].iter().filter(|byte| **byte == b'\n').count() == 0
            && signature.starts_with(b"untrusted");
        match key.verify("bundle.json", BUNDLE, &changed) {
            Err(error) => assert_eq!(error.kind(), CatalogErrorKind::Signature, "{at}"),
            // The first line is not signed, as its name says; and white space at the end means nothing.
            Ok(_) => assert!(is_comment || signature[at].is_ascii_whitespace(), "{at}"),
        }
    }
    assert!(key.verify("bundle.json", BUNDLE, b"").is_err());
    assert!(key.verify("bundle.json", b"", signature).is_err());
}

#[test]
fn signatures_of_minisign_are_checked_in_both_forms() {
    let key = key(MINISIGN_KEY);
    for (signature, comment) in [(PREHASHED, "greet 1.0.0"), (LEGACY, "greet 1.0.0, legacy")] {
        let checked = key.verify("bundle.json", BUNDLE, signature.as_bytes()).unwrap();
        assert_eq!(
            checked,
            SignatureCheck::Valid {
                comment: Some(comment.to_owned())
            }
        );
        refuses_changes(&key, signature.as_bytes());
    }
    let error = key.verify("bundle.json", BUNDLE, OTHER.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`bundle.json`: it is signed by another key than the catalog's"
    );
}

#[test]
fn raw_signatures_are_checked() {
    let key = key(ED25519_KEY);
    key.verify("bundle.json", BUNDLE, RAW.as_bytes()).unwrap();
    refuses_changes(&key, RAW.as_bytes());
    let error = key
        .verify("bundle.json", BUNDLE, PREHASHED.as_bytes())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`bundle.json`: its signature has not the 64 bytes of ed25519"
    );
}

/// Section 7.1 of RFC 8032, tests 1 to 3.
#[test]
fn the_vectors_of_rfc_8032() {
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    };
    for (public, message, signature) in [
        (
            "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            "/FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQgCU=",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ),
    ] {
        let key = key(public);
        key.verify("message", &bytes(message), &bytes(signature)).unwrap();
        let mut other = bytes(message);
        other.push(0);
        key.verify("message", &other, &bytes(signature)).unwrap_err();
    }
}

#[test]
fn keys_are_read_in_their_spellings() {
    let minisign = key(MINISIGN_KEY);
    assert_eq!(minisign.kind(), "minisign");
    assert_eq!(key(&minisign.to_string()), minisign);
    let ed25519 = key(ED25519_KEY);
    assert_eq!(ed25519.kind(), "ed25519");
    assert_eq!(key(&ed25519.to_string()), ed25519);
    assert_eq!(key(&format!("  {ed25519}\n")), ed25519);
    for bad in [
        "",
        "x",
        "AAAA",
        "RWQ",
        &"A".repeat(5000),
        "untrusted comment: x",
        PREHASHED,
    ] {
        let error = bad.parse::<CatalogKey>().unwrap_err();
        assert_eq!(error.kind(), CatalogErrorKind::Invalid, "{bad}");
    }
}

#[test]
fn a_key_wants_a_signature_of_its_kind() {
    let bundle = Bundle::parse("bundle.json", BUNDLE).unwrap();
    let mut entry = bundle.entry();
    entry.place = "bundle.json".to_owned();
    let beside = [
        (SignatureFile::Minisign, PREHASHED.as_bytes().to_vec()),
        (SignatureFile::Ed25519, RAW.as_bytes().to_vec()),
    ];
    assert_eq!(
        entry.check_signature(BUNDLE, &beside, None).unwrap(),
        SignatureCheck::NotChecked
    );
    for text in [MINISIGN_KEY, ED25519_KEY] {
        let key = key(text);
        assert!(
            entry
                .check_signature(BUNDLE, &beside, Some(&key))
                .unwrap()
                .is_valid()
        );
        let only_other: Vec<_> = beside
            .iter()
            .filter(|(kind, _)| *kind != key.signature_file())
            .cloned()
            .collect();
        for missing in [&[][..], &only_other] {
            let error = entry.check_signature(BUNDLE, missing, Some(&key)).unwrap_err();
            assert_eq!(error.kind(), CatalogErrorKind::Signature);
            assert!(error.to_string().contains("it has no"), "{error}");
        }
    }
    assert_eq!(
        entry.signature_files(),
        [
            (SignatureFile::Minisign, "bundle.json.minisig".to_owned()),
            (SignatureFile::Ed25519, "bundle.json.sig".to_owned()),
        ]
    );
    // What the index holds goes before files beside the bundle.
    entry.signature = Some(EntrySignature::Ed25519(RAW.trim().to_owned()));
    assert!(entry.signature_files().is_empty());
    assert!(
        entry
            .check_signature(BUNDLE, &[], Some(&key(ED25519_KEY)))
            .unwrap()
            .is_valid()
    );
    entry.signature = Some(EntrySignature::Ed25519("A".repeat(5000)));
    assert!(
        entry
            .check_signature(BUNDLE, &[], Some(&key(ED25519_KEY)))
            .is_err()
    );
}
