//! The tokens that clients present.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::StreamExt as _;
use leaderelection_serving::secret;
#[cfg(feature = "lease-api")]
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

use crate::environment::TOKEN_VARIABLE;
use crate::exit::Failure;

/// The accepted lengths of a token.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=4096;

/// The beginning of the name of a service account of a cluster, or of the group of those of a namespace. A line with one says
/// what it may do. It is no token: everybody may know it.
const ACCOUNT: &str = "system:serviceaccount";

/// The largest part of a file of tokens that is read.
const LARGEST_FILE: u64 = 256 * 1024;

/// The tokens of which a client has to present one. `Debug` does not print them. Clones change together.
#[derive(Clone)]
pub(crate) struct Token {
    /// The file, which may change; `None` if the token is from the environment.
    file: Option<PathBuf>,
    entries: Arc<watch::Sender<Vec<Entry>>>,
}

/// A token, and what it is for.
struct Entry {
    text: String,
    scope: Scope,
}

/// What a token is for: Leases of namespaces, and whether it may write them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// `None` if it is for some namespaces only.
    pub(crate) everywhere: Option<bool>,
    pub(crate) namespaces: BTreeMap<String, bool>,
}

impl Scope {
    const EVERYTHING: Self = Self { everywhere: Some(true), namespaces: BTreeMap::new() };
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    pub(super) fn in_file(path: &Path) -> Result<Self, Failure> {
        Ok(Self::of(Some(path.to_owned()), Self::read(path)?))
    }

    fn of(file: Option<PathBuf>, entries: Vec<Entry>) -> Self {
        Self { file, entries: Arc::new(watch::Sender::new(entries)) }
    }

    /// The file, if it has one token for everything, and nothing else.
    pub(crate) fn file_of_one(&self) -> Option<&Path> {
        let is_one =
            matches!(self.entries.borrow().as_slice(), [one] if one.is_token() && one.scope == Scope::EVERYTHING);
        self.file.as_deref().filter(|_| is_one)
    }

    /// Reads the file again; `None` if there is none. After a failure, the old tokens are valid.
    pub(super) fn reload(&self) -> Option<Result<(), Failure>> {
        let read = Self::read(self.file.as_deref()?);
        Some(read.map(|entries| drop(self.entries.send_replace(entries))))
    }

    fn read(path: &Path) -> Result<Vec<Entry>, Failure> {
        let mut text = String::new();
        let read = secret::open(path).and_then(|file| file.take(LARGEST_FILE + 1).read_to_string(&mut text));
        let length = read.map_err(|error: io::Error| {
            let problem = format!("cannot read the token in {}: {error}; check --token-file", path.display());
            Failure::usage(problem)
        })?;
        if length as u64 > LARGEST_FILE {
            let most = LARGEST_FILE / 1024;
            let path = path.display();
            return Err(Failure::usage(format!(
                "--token-file {path} is larger than {most} KiB; remove old tokens from it"
            )));
        }
        let lines = text.lines().filter(|line| !line.trim_ascii().is_empty());
        let entries = lines.map(|line| Entry::parse(line, path)).collect::<Result<Vec<_>, _>>()?;
        if entries.is_empty() {
            Self::checked("", &format!("--token-file {}", path.display()))?;
        }
        Ok(entries)
    }

    pub(super) fn from_environment() -> Result<Option<Self>, Failure> {
        std::env::var_os(TOKEN_VARIABLE)
            .map(|text| Self::checked(&text.to_string_lossy(), &format!("the token in {TOKEN_VARIABLE}")))
            .transpose()
            .map(|text| text.map(|text| Self::of(None, vec![Entry { text, scope: Scope::EVERYTHING }])))
    }

    /// Returns the token in a text.
    fn checked(text: &str, what: &str) -> Result<String, Failure> {
        let token = text.trim_ascii();
        let problem = if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            "has characters that are not allowed in an HTTP header"
        } else if token.is_empty() {
            "is empty"
        } else if token.len() < *LENGTHS.start() {
            "is too short to be safe"
        } else if token.len() > *LENGTHS.end() {
            "is too long for a header"
        } else {
            return Ok(token.to_owned());
        };
        Err(Failure::usage(format!("{what} {problem}; make a token with `openssl rand -hex 32`")))
    }

    /// Returns `true` if a request with these headers presents a token for everything.
    pub(crate) fn is_shown_by(&self, headers: &HeaderMap) -> bool {
        self.scope_of(headers) == Some(Scope::EVERYTHING)
    }

    /// Returns what the token of a request with these headers is for; `None` if it presents none.
    pub(crate) fn scope_of(&self, headers: &HeaderMap) -> Option<Scope> {
        self.find(headers, |entry| entry.scope.clone())
    }

    /// Returns the name of the token of a request with these headers in logs: the first digits of its SHA-256.
    #[cfg(feature = "lease-api")]
    pub(crate) fn name_of(&self, headers: &HeaderMap) -> Option<String> {
        self.find(headers, |entry| {
            let digest = Sha256::digest(entry.text.as_bytes());
            digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
        })
    }

    /// Returns what the line of a service account is for, or that of all accounts of its namespace; `None` if there is neither.
    #[cfg(feature = "lease-api")]
    pub(crate) fn scope_of_account(&self, name: &str) -> Option<Scope> {
        let rest = name.strip_prefix(ACCOUNT)?;
        let group = rest.strip_prefix(':').and_then(|rest| rest.split_once(':')).map(|(namespace, _)| namespace);
        let group = format!("{ACCOUNT}s:{}", group?);
        let entries = self.entries.borrow();
        let line = |name: &str| entries.iter().find(|entry| entry.text == name);
        line(name).or_else(|| line(&group)).map(|entry| entry.scope.clone())
    }

    fn find<T>(&self, headers: &HeaderMap, found: impl Fn(&Entry) -> T) -> Option<T> {
        let shown = shown_in(headers)?;
        self.entries.borrow().iter().find(|entry| entry.equals(&shown)).map(found)
    }

    /// The answer to a request that shows what `scope` finds. A stream ends when that changes.
    pub(crate) fn keep_watch(
        &self,
        answer: Response,
        scope: impl Fn(&Self) -> Option<Scope> + Send + 'static,
    ) -> Response {
        if answer.body().size_hint().exact().is_some() {
            return answer;
        }
        let (token, mut changes, before) = (self.clone(), self.entries.subscribe(), scope(self));
        let revoked = async move { while scope(&token) == before && changes.changed().await.is_ok() {} };
        answer.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(revoked))))
    }
}

impl Entry {
    /// Reads a line: a token, and behind a space the namespaces, with commas between them. `:read` behind one, or behind `*` for
    /// all, lets the token only read. A line that was cut behind the space, or that has a comment there, is no token for
    /// everything.
    fn parse(line: &str, path: &Path) -> Result<Self, Failure> {
        let line = line.trim_ascii_start().trim_end_matches('\r');
        let (token, rest) = line.split_once([' ', '\t']).map_or((line, None), |(token, rest)| (token, Some(rest)));
        let end = if rest.is_some() { ", up to its first space," } else { "" };
        let text = Token::checked(token, &format!("a token in {}{end}", path.display()))?;
        let Some(rest) = rest else { return Ok(Self { text, scope: Scope::EVERYTHING }) };
        let mut scope = Scope::default();
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
        };
        let mut is_right = true;
        for name in rest.split([',', ' ', '\t']).filter(|name| !name.is_empty()) {
            match name.strip_suffix(":read") {
                Some("*") => scope.everywhere = Some(false),
                read => {
                    let name = read.unwrap_or(name);
                    is_right &= is_name(name);
                    scope.namespaces.insert(name.to_owned(), read.is_none());
                }
            }
        }
        if !is_right || scope == Scope::default() {
            let path = path.display();
            return Err(Failure::usage(format!(
                "a token in {path} is followed by {rest:?}, which is not a list of namespaces; expected names separated by commas, \
                 each with or without :read at its end, or *:read, or nothing"
            )));
        }
        Ok(Self { text, scope })
    }

    fn is_token(&self) -> bool {
        !self.text.starts_with(ACCOUNT)
    }

    /// Compares in a time that does not depend on the number of equal bytes.
    fn equals(&self, shown: &[u8]) -> bool {
        self.is_token() && self.text.as_bytes().ct_eq(shown).into()
    }
}

/// Returns what a request with these headers presents.
pub(crate) fn shown_in(headers: &HeaderMap) -> Option<Vec<u8>> {
    headers.get(AUTHORIZATION).and_then(|value| shown(value.to_str().ok()?))
}

/// Returns a bearer token, or the password of a user.
fn shown(authorization: &str) -> Option<Vec<u8>> {
    let (scheme, value) = authorization.split_once(' ')?;
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Some(value.trim_ascii().into()),
        "basic" => {
            let pair = BASE64_STANDARD.decode(value.trim_ascii()).ok()?;
            let colon = pair.iter().position(|byte| *byte == b':')?;
            Some(pair[colon + 1..].to_vec())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::exit::Exit;

    const SECRET: &str = "correct-horse-battery";

    fn token(text: &str) -> Token {
        let text = Token::checked(text, "the token").unwrap();
        Token::of(None, vec![Entry { text, scope: Scope::EVERYTHING }])
    }

    fn is_shown(authorization: &str) -> bool {
        let token = token(SECRET);
        let value = HeaderValue::from_str(authorization).unwrap();
        token.is_shown_by(&HeaderMap::from_iter([(AUTHORIZATION, value)]))
    }

    #[test]
    fn is_shown_as_a_bearer_s_or_as_a_password() {
        let basic = |pair: &str| format!("Basic {}", BASE64_STANDARD.encode(pair));
        for right in [format!("Bearer {SECRET}"), format!("bearer  {SECRET}"), basic(&format!("me:{SECRET}"))] {
            assert!(is_shown(&right), "{right}");
        }
        for wrong in [
            SECRET.to_owned(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            format!("Bearer {SECRET}x"),
            format!("Bearer {}", &SECRET[..SECRET.len() - 1]),
            format!("Digest {SECRET}"),
            format!("Basic {SECRET}"),
            basic(SECRET),
            basic(&format!("{SECRET}:me")),
        ] {
            assert!(!is_shown(&wrong), "{wrong}");
        }
        assert!(!token(SECRET).is_shown_by(&HeaderMap::new()));
    }

    #[test]
    fn a_token_for_namespaces_opens_nothing_else() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{SECRET}\n\nof-two-namespaces web, batch\n")).unwrap();
        let token = Token::in_file(file.path()).unwrap();
        let shown = |secret: &str| {
            let value = HeaderValue::from_str(&format!("Bearer {secret}")).unwrap();
            HeaderMap::from_iter([(AUTHORIZATION, value)])
        };
        let of = |names: &[(&str, bool)]| names.iter().map(|(name, writes)| ((*name).to_owned(), *writes)).collect();
        let two = Scope { everywhere: None, namespaces: of(&[("batch", true), ("web", true)]) };
        assert_eq!(token.scope_of(&shown("of-two-namespaces")), Some(two));
        assert!(!token.is_shown_by(&shown("of-two-namespaces")));
        assert_eq!(token.scope_of(&shown(SECRET)), Some(Scope::EVERYTHING));
        assert_eq!(token.scope_of(&shown("of-three-namespaces")), None);
        assert_eq!(token.file_of_one(), None);
        std::fs::write(file.path(), format!("{SECRET}\nreads-everything *:read\nreads-one-of-two web:read,batch\n"))
            .unwrap();
        token.reload().unwrap().unwrap();
        let reads = Scope { everywhere: Some(false), ..Scope::default() };
        assert_eq!(token.scope_of(&shown("reads-everything")), Some(reads));
        assert!(!token.is_shown_by(&shown("reads-everything")), "it opens no page on which somebody can write");
        let mixed = Scope { everywhere: None, namespaces: of(&[("batch", true), ("web", false)]) };
        assert_eq!(token.scope_of(&shown("reads-one-of-two")), Some(mixed));
        std::fs::write(file.path(), format!("{SECRET}\nshort web\n")).unwrap();
        assert!(token.reload().unwrap().is_err());
        assert!(token.is_shown_by(&shown(SECRET)), "the old tokens are valid");
        std::fs::write(file.path(), SECRET).unwrap();
        token.reload().unwrap().unwrap();
        assert_eq!(token.file_of_one(), Some(file.path()));
    }

    #[cfg(feature = "lease-api")]
    #[test]
    fn the_name_of_a_service_account_has_roles_and_is_no_token() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (one, all) = ("system:serviceaccount:web:elector", "system:serviceaccounts:web");
        std::fs::write(file.path(), format!("{one} web,batch\n{all} web:read\nsystem:serviceaccount:ops:admin\n"))
            .unwrap();
        let token = Token::in_file(file.path()).unwrap();
        for name in [one, all, "system:serviceaccount:ops:admin"] {
            let value = HeaderValue::from_str(&format!("Bearer {name}")).unwrap();
            assert_eq!(token.scope_of(&HeaderMap::from_iter([(AUTHORIZATION, value)])), None, "{name}");
        }
        let names = |name: &str| token.scope_of_account(name).map(|scope| Vec::from_iter(scope.namespaces));
        let of =
            |names: &[(&str, bool)]| Some(names.iter().map(|(name, writes)| ((*name).to_owned(), *writes)).collect());
        assert_eq!(names(one), of(&[("batch", true), ("web", true)]));
        assert_eq!(names("system:serviceaccount:web:another"), of(&[("web", false)]));
        assert_eq!(token.scope_of_account("system:serviceaccount:ops:admin"), Some(Scope::EVERYTHING));
        for stranger in ["system:serviceaccount:other:elector", "system:serviceaccount:web", all, "admin", SECRET] {
            assert_eq!(token.scope_of_account(stranger), None, "{stranger}");
        }
        std::fs::write(file.path(), "system:serviceaccount:ops:admin\n").unwrap();
        token.reload().unwrap().unwrap();
        assert_eq!(token.file_of_one(), None, "a kubeconfig has no use for it");
    }

    #[test]
    fn a_line_that_was_cut_or_names_no_namespace_is_no_token_for_everything() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            Token::in_file(file.path()).unwrap_err()
        };
        let line = format!("{SECRET} web\n");
        let failure = refused(&line.repeat(LARGEST_FILE as usize / line.len() + 1));
        assert!(failure.exit == Exit::Usage && failure.to_string().contains("256 KiB"), "{failure}");
        for rest in [" ", "\t", " ,", " # of the web team", " web,Web", " *", " web:write", " :read"] {
            let failure = refused(&format!("{SECRET}{rest}\n"));
            let shown = format!("followed by {:?}", &rest[1..]);
            assert!(failure.exit == Exit::Usage && failure.to_string().contains(&shown), "{failure}");
        }
        for line in [SECRET.to_owned(), format!("\n  {SECRET}\r\n"), format!("{SECRET}\tweb, batch\n")] {
            std::fs::write(file.path(), line).unwrap();
            Token::in_file(file.path()).unwrap();
        }
        std::fs::write(file.path(), line.repeat(LARGEST_FILE as usize / line.len())).unwrap();
        assert!(Token::in_file(file.path()).is_ok());
        for (text, problem) in [
            ("", " is empty; make a token with"),
            (" \n\n", " is empty; make a token with"),
            ("short\n", " is too short to be safe"),
            ("not one token but many words\n", ", up to its first space, is too short to be safe"),
        ] {
            let failure = refused(text);
            let shown = format!("{}{problem}", file.path().display());
            assert!(failure.exit == Exit::Usage && failure.to_string().contains(&shown), "{failure}");
        }
    }

    #[test]
    fn is_neither_short_nor_strange_and_never_shown() {
        for bad in ["", "too-short", "with spaces in the middle", "naïve-but-long-enough", &"x".repeat(4097)] {
            let failure = Token::checked(bad, "the token in a file").unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(bad.is_empty() || !failure.to_string().contains(bad), "{failure}");
        }
        assert_eq!(format!("{:?}", token(&format!(" {SECRET}\r\n"))), "Token(…)");
    }
}
