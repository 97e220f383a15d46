use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use leaderelection::{MemoryStore, StoreErrorKind};

use super::*;

/// A place with a parameter of each form.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shelf {
    room: String,
    key: String,
    label: Option<String>,
    locked: bool,
    lit: Option<bool>,
    keep: u64,
    tags: BTreeMap<String, String>,
}

impl Table for Shelf {
    const EXAMPLE: &'static str = "shelf://room/book";

    const SCHEMES: &'static [Scheme<Self>] = &[
        Scheme {
            name: "shelf",
            parameters: &[
                Parameter {
                    name: "label",
                    help: "the name on the shelf, such as eu",
                    value: Value::Text(checked_region, |shelf| &mut shelf.label),
                },
                Parameter {
                    name: "locked",
                    help: "true if the shelf has a key",
                    value: Value::Flag(|shelf| &mut shelf.locked),
                },
                Parameter { name: "lit", help: "true for a lamp", value: Value::Choice(|shelf| &mut shelf.lit) },
                Parameter {
                    name: "keep",
                    help: "the number of books",
                    value: Value::Count(2, |shelf| &mut shelf.keep),
                },
                Parameter {
                    name: "tag",
                    help: "a tag, such as tag=colour=red",
                    value: Value::Pairs(
                        |key, _| if key.is_empty() { Err("a tag without a name".to_owned()) } else { Ok(()) },
                        |shelf| &mut shelf.tags,
                    ),
                },
            ],
            refused: &[("ca", "a shelf has no server")],
        },
        Scheme { name: "box", parameters: &[], refused: &[] },
    ];

    fn made(_scheme: &str, authority: &str, path: String) -> Result<Self, String> {
        check_name(authority, "room", "no room")?;
        check_key(&path, "no book in the room")?;
        Ok(Self { room: authority.to_owned(), key: path, keep: 2, ..Self::default() })
    }

    fn authority(&self) -> &str {
        &self.room
    }
}

impl Place for Shelf {
    fn key(&self) -> &str {
        &self.key
    }

    fn key_mut(&mut self) -> &mut String {
        &mut self.key
    }

    fn store(&self) -> CompiledHere<'_, Result<Arc<dyn ConditionalStore>, StoreError>> {
        Box::pin(std::future::ready(Ok(Arc::new(MemoryStore::new()) as Arc<dyn ConditionalStore>)))
    }
}

impl FromStr for Shelf {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        parse(text)
    }
}

impl fmt::Display for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self, f)
    }
}

fn read(text: &str) -> Result<Shelf, String> {
    text.parse().map_err(|error: UrlError| error.to_string())
}

#[test]
fn a_place_is_shown_as_it_is_read_and_without_what_is_the_default() {
    for (text, shown) in [
        ("shelf://room/book", "shelf://room/book"),
        ("shelf://room/a%20book?", "shelf://room/a%20book"),
        ("shelf://room/book?keep=2&locked=false", "shelf://room/book"),
        (
            "shelf://room/book?tag=b=2&keep=7&lit=false&tag=a%3D1&locked=true&label=eu",
            "shelf://room/book?label=eu&locked=true&lit=false&keep=7&tag=a=1&tag=b=2",
        ),
    ] {
        let shelf = read(text).unwrap();
        assert_eq!(shelf.to_string(), shown);
        assert_eq!(read(shown), Ok(shelf));
    }
}

#[test]
fn a_wrong_parameter_is_named_without_its_value() {
    for (query, problem) in [
        ("label=eu%20secret", "the region is empty or not a region's name; label is the name on the shelf"),
        ("locked=secret", "locked is neither true nor false; locked is true if the shelf has a key"),
        ("lit=", "lit is neither true nor false"),
        ("keep=0", "keep is no number of at least 1; keep is the number of books"),
        ("keep=3&keep=3", "the parameter keep occurs twice"),
        ("tag=secret", "the value of tag has no = in it; tag is a tag, such as"),
        ("tag==secret", "a tag without a name"),
        (
            "keep=3&secret=1",
            "unknown parameter, number 2 after the ?; shelf:// takes label, locked, lit, keep, tag; a ? in a name",
        ),
        ("lokced=true", "unknown parameter lokced (did you mean locked?); shelf:// takes"),
        ("Label=eu", "unknown parameter Label (did you mean label?)"),
        ("lable=eu", "unknown parameter, number 1"),
        ("locked%0A=true", "unknown parameter, number 1"),
        ("ca=secret", "a shelf has no server; a valid URL"),
    ] {
        let error = read(&format!("shelf://room/book?{query}")).unwrap_err();
        assert!(error.contains(problem) && error.ends_with("looks like shelf://room/book"), "{query}: {error}");
        assert!(!error.contains("secret"), "{query}: {error}");
    }
    assert!(read("box://room/book?secret").unwrap_err().contains("box:// takes no parameters"));
    assert!(read("desk://secret/book").unwrap_err().contains("does not begin with shelf:// or box://"));
}

#[test]
fn a_parameter_is_given_by_a_program_as_strictly_as_by_a_url() {
    let shelf = read("shelf://room/book").unwrap();
    assert_eq!(with(shelf.clone(), "keep", "7").unwrap(), read("shelf://room/book?keep=7").unwrap());
    let error = with(shelf, "keep", "many").unwrap_err();
    assert!(error.to_string().contains("keep is no number"), "{error}");
    let error = with(read("shelf://room/book").unwrap(), "secret", "7").unwrap_err();
    assert!(error.to_string().starts_with("unknown parameter; shelf:// takes label"), "{error}");
    assert_eq!(error.fatal().kind(), StoreErrorKind::Fatal);
}
