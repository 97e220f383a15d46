//! Tests of the one spelling that every lock has: two texts that open the same object give one name, and what nobody sees
//! names no other lock. The fuzzer's target `url` looks for further ones.

use super::{Location, UrlError};

fn parse(text: &str) -> Result<Location, String> {
    text.parse().map_err(|error: UrlError| error.to_string())
}

#[test]
fn what_nobody_sees_makes_no_other_lock() {
    for url in [
        #[cfg(feature = "s3")]
        "s3://bucket/locks/scheduler",
        #[cfg(feature = "s3")]
        "s3://bucket/key?endpoint=http://host",
        #[cfg(feature = "gcs")]
        "gs://bucket/locks/scheduler",
        #[cfg(feature = "azure")]
        "az://account/container/blob",
        #[cfg(feature = "kubernetes")]
        "lease://default/scheduler",
        #[cfg(feature = "opendal-services")]
        "tos://bucket/key?region=cn-shanghai",
        #[cfg(unix)]
        "file:///var/lib/scheduler",
        #[cfg(unix)]
        "sequenced+file:///var/lib/scheduler?keep=5",
        "memory:scheduler",
    ] {
        parse(url).unwrap();
        for (hidden, code) in [
            ("\r", "U+000D (a carriage return)"),
            ("\n", "U+000A (a line feed)"),
            ("\t", "U+0009 (a tab)"),
            (" ", "U+0020 (a space)"),
            ("\u{a0}", "U+00A0 (a no-break space)"),
            ("\u{200b}", "U+200B (a zero-width space)"),
            ("\u{feff}", "U+FEFF (a byte order mark)"),
        ] {
            let error = parse(&format!("{url}{hidden}")).unwrap_err();
            assert!(error.contains(&format!("ends with {code}; leave that out")), "{url} {hidden:?}: {error}");
            let error = parse(&format!("{hidden}{url}")).unwrap_err();
            assert!(error.contains(&format!("begins with {code}; leave that out")), "{url} {hidden:?}: {error}");
        }
        for (before, after, problem) in [
            ("\"", "\"", "the URL begins with a quotation mark (\")"),
            ("'", "'", "the URL begins with a quotation mark (')"),
            ("LEADERELECT_LOCK=", "", "the URL begins with the name of a variable and ="),
        ] {
            let error = parse(&format!("{before}{url}{after}")).unwrap_err();
            assert!(error.contains(problem), "{url}: {error}");
        }
    }
}

#[test]
fn an_empty_text_says_where_it_may_come_from() {
    assert!(parse("").unwrap_err().contains("remove the line feed (U+000A)"));
}

#[test]
fn what_is_escaped_and_not_seen_is_refused_too() {
    for (url, problem) in [
        #[cfg(feature = "s3")]
        ("s3://bucket/scheduler%0D", "the key ends with U+000D"),
        #[cfg(feature = "s3")]
        ("s3://bucket/%20scheduler", "the key begins with U+0020"),
        #[cfg(feature = "s3")]
        ("s3://bucket/key?endpoint=http://host%0D", "the endpoint ends with U+000D"),
        #[cfg(feature = "s3")]
        ("s3://bucket/key?region=eu-west-1%20", "the region ends with U+0020"),
        #[cfg(feature = "gcs")]
        ("gs://bucket/scheduler%20", "the key ends with U+0020"),
        #[cfg(feature = "azure")]
        ("az://account/container/blob%EF%BB%BF", "the key ends with U+FEFF"),
        #[cfg(feature = "opendal-services")]
        ("oss://bucket/a%C2%A0b", "the key has, as character 2, U+00A0"),
        #[cfg(unix)]
        ("file:///var/lib%20/scheduler", "the directory ends with U+0020"),
        #[cfg(unix)]
        ("file:///var/lib/scheduler%0A", "the key ends with U+000A"),
    ] {
        let error = parse(url).unwrap_err();
        assert!(error.contains(problem), "{url}: {error}");
    }
}

#[test]
fn two_spellings_of_one_object_have_one_name() {
    for (spelling, name) in [
        #[cfg(feature = "s3")]
        ("s3://bucket/%61/%62?", "s3://bucket/a/b"),
        #[cfg(feature = "s3")]
        ("s3://bucket/a%2Fb", "s3://bucket/a/b"),
        #[cfg(feature = "s3")]
        ("s3://bucket/key?endpoint=HTTP://Store.Example:80/", "s3://bucket/key?endpoint=http://store.example"),
        #[cfg(feature = "s3")]
        (
            "s3://bucket/key?endpoint=https://store.example:443/a/../storage/v1/s3/",
            "s3://bucket/key?endpoint=https://store.example/storage/v1/s3",
        ),
        #[cfg(feature = "s3")]
        (
            "s3://bucket/key?bare_etags=false&path_style=true&endpoint=http%3A%2F%2Fhost&region=eu-west-1",
            "s3://bucket/key?region=eu-west-1&endpoint=http://host",
        ),
        #[cfg(feature = "gcs")]
        ("gs://bucket/key?endpoint=HTTPS://Host:443/", "gs://bucket/key?endpoint=https://host"),
        #[cfg(feature = "azure")]
        ("az://Account/container/blob", "az://account/container/blob"),
        #[cfg(feature = "azure")]
        ("https://Account.Blob.Core.Windows.net:443/container/blob", "az://account/container/blob"),
        #[cfg(feature = "azure")]
        ("http://LOCALHOST:80/account/container/blob", "http://localhost/account/container/blob"),
        #[cfg(feature = "opendal-services")]
        ("oss://bucket/key?endpoint=https://Host:443/&keep=2", "oss://bucket/key?endpoint=https://host"),
        #[cfg(unix)]
        ("file:///var//lib/./scheduler", "file:///var/lib/scheduler"),
        #[cfg(unix)]
        ("file:////var%2Flib%2fscheduler", "file:///var/lib/scheduler"),
        #[cfg(unix)]
        ("sequenced+file:///var//lib/scheduler?keep=2", "sequenced+file:///var/lib/scheduler"),
    ] {
        let (spelt, named) = (parse(spelling).unwrap(), parse(name).unwrap());
        assert_eq!(spelt.to_string(), name);
        assert_eq!(spelt, named);
    }
}

#[test]
fn what_would_be_changed_on_the_way_to_the_object_is_refused() {
    for (url, problem) in [
        #[cfg(unix)]
        ("file:///var/link/../scheduler", "must not contain .."),
        #[cfg(unix)]
        ("file:///var/lib/.", "or end with .;"),
    ] {
        let error = parse(url).unwrap_err();
        assert!(error.contains(problem), "{url}: {error}");
    }
    #[cfg(feature = "azure")]
    for key in ["lock.", "locks./a", "a/../b", "locks/", "locks%5Ca"] {
        let error = parse(&format!("az://account/container/{key}")).unwrap_err();
        assert!(error.contains("which Azure changes"), "{key}: {error}");
    }
    #[cfg(feature = "azure")]
    for host in ["account.blob.core.windows.net:0443", "account.blob.core.windows.net."] {
        let error = parse(&format!("https://{host}/container/blob")).unwrap_err();
        assert!(error.contains("the host's name is invalid"), "{host}: {error}");
    }
}

/// The SDK of AWS joins a path without a slash at its end and the name of the bucket.
#[cfg(feature = "s3")]
#[tokio::test]
async fn the_path_of_an_endpoint_needs_no_slash_at_its_end() {
    for slash in ["", "/", "//"] {
        let location = parse(&format!("s3://bucket/key?endpoint=http://127.0.0.1:1/storage/v1/s3{slash}")).unwrap();
        let endpoint = location.endpoint().await.unwrap();
        assert_eq!(endpoint.as_deref(), Some("http://127.0.0.1:1/storage/v1/s3/bucket"));
    }
}

#[cfg(feature = "azure")]
#[tokio::test]
async fn a_host_that_is_none_of_azures_is_told_how_to_name_a_store_of_s3() {
    for (url, store) in [
        ("http://127.0.0.1:9000/bucket/locks/key", "http://127.0.0.1:9000/bucket/locks/key: "),
        ("https://minio.example/bucket/key", "https://minio.example/bucket/key: "),
    ] {
        let error = parse(url).unwrap().open().await.err().unwrap().to_string();
        assert!(error.starts_with(store) && error.contains("s3://bucket/key?endpoint=http://host"), "{error}");
    }
    let error = parse("http://127.0.0.1:9000/bucket/key").unwrap_err();
    assert!(error.contains("for an S3-compatible store, write s3://bucket/key?endpoint=http://host; "), "{error}");
    assert!(error.contains("and this one is invalid: no blob after the container"), "{error}");
}
