//! Files of a catalog, wherever it is.

use crate::{
    CatalogEntry, CatalogError, CatalogKey, EntrySignature, MAX_SIGNATURE_BYTES, SIGNATURE_ENDINGS,
    SignatureCheck, SignatureFile,
};

impl CatalogEntry {
    /// Returns the files in which the signature of this entry may be, beside its bundle: none if the index holds it.
    #[must_use]
    pub fn signature_files(&self) -> Vec<(SignatureFile, String)> {
        if self.signature.is_some() {
            return Vec::new();
        }
        let files = SIGNATURE_ENDINGS.iter();
        files
            .map(|(kind, ending)| (*kind, format!("{}{ending}", self.place)))
            .collect()
    }

    /// Checks the signature over the exact bytes of the bundle of this entry. `beside` are the contents of those of
    /// [`Self::signature_files`] that exist. Without a key, nothing is checked.
    ///
    /// # Errors
    /// If there is a key, and no signature of its kind, or a wrong one.
    pub fn check_signature(
        &self,
        bundle: &[u8],
        beside: &[(SignatureFile, Vec<u8>)],
        key: Option<&CatalogKey>,
    ) -> Result<SignatureCheck, CatalogError> {
        let Some(key) = key else {
            return Ok(SignatureCheck::NotChecked);
        };
        let in_index = match &self.signature {
            Some(EntrySignature::Ed25519(text)) => Some((SignatureFile::Ed25519, text.as_bytes())),
            Some(EntrySignature::Minisign(text)) => Some((SignatureFile::Minisign, text.as_bytes())),
            None => None,
        };
        let beside = beside.iter().map(|(kind, content)| (*kind, content.as_slice()));
        let mut signatures = in_index.into_iter().chain(beside);
        let found = signatures.find(|(kind, _)| *kind == key.signature_file());
        let Some((_, signature)) = found else {
            return Err(key.missing(&self.place));
        };
        if signature.len() as u64 > MAX_SIGNATURE_BYTES {
            let problem = format!("its signature has more than {MAX_SIGNATURE_BYTES} bytes");
            return Err(CatalogError::invalid(&self.place, problem));
        }
        key.verify(&self.place, bundle, signature)
    }
}
