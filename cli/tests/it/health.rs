//! `leaderelect health`, and the port that it and Kubernetes ask.

use rustix::process::Signal;

use crate::metrics::ask;
use crate::peers::own_address;
use crate::support::{Place, Running, end, end_of, leaderelect};

/// A sidecar, with its address and, if there is one, that of its probes.
fn sidecar(lock: &str, identity: &str, more: &[&str]) -> (Running, String) {
    let listen = own_address();
    let args = ["serve", "--lock", lock, "--identity", identity, "--listen", &listen, "--drain", "0s"];
    let mut running = Running::start(&[&args[..], more].concat());
    let probes = more.contains(&"--probe-listen");
    let url = running.wait_for_note(if probes { "probes and metrics at http://" } else { "serving http://" });
    (running, url.trim_end_matches('/').to_owned())
}

#[test]
fn it_says_yes_or_no_with_its_exit_code() {
    let place = Place::new();
    let lock = place.lock("a");
    let (mut leader, address) = sidecar(&lock, "node-1", &[]);
    leader.wait_for_note("node-1 leads");
    let code = |args: &[&str], address: &str| {
        let ended = end(&[&["health", "--request-timeout", "60s", "--listen", address][..], args].concat());
        (ended.code, ended.stderr)
    };
    for question in [&[][..], &["--leading"], &["--ready"]] {
        let (code, said) = code(question, &address);
        assert!(code == Some(0) && !said.contains(r"\n"), "{question:?}: {said}");
    }
    let (mut follower, other) = sidecar(&lock, "node-2", &[]);
    follower.wait_for_note("node-1 leads");
    assert_eq!(code(&[], &other).0, Some(0));
    let (no, said) = code(&["--leading"], &other);
    assert_eq!(no, Some(1), "{said}");
    assert!(said.contains("/leading: not leading"), "{said}");

    leader.signal(Signal::TERM);
    leader.end();
    let (silent, said) = code(&[], &address);
    assert_eq!(silent, Some(69), "{said}");
    assert!(said.contains(&format!("no answer from http://{address}")), "{said}");
}

#[test]
fn it_asks_where_the_sidecar_listens() {
    let place = Place::new();
    let (lock, path) = (place.lock("a"), place.path("leader.sock"));
    let listen = format!("unix:{}", path.display());
    let args = ["serve", "--lock", &lock, "--listen", &listen, "--drain", "0s", "--probe-listen", "127.0.0.1:0"];
    let mut sidecar = Running::start(&args);
    let probes = sidecar.wait_for_note("probes and metrics at http://").trim_end_matches('/').to_owned();
    for (listen, probes, code) in
        [(&*listen, None, 0), (&listen, Some(&*probes), 0), ("stdin", Some(&probes), 0), ("stdin", None, 64)]
    {
        let mut command = leaderelect(["health", "--request-timeout", "60s"]);
        command.env("LEADERELECT_LISTEN", listen);
        command.envs(probes.map(|probes| ("LEADERELECT_PROBE_LISTEN", probes)));
        let ended = end_of(command);
        assert_eq!(ended.code, Some(code), "{listen}, {probes:?}: {ended:?}");
        assert!(code == 0 || ended.stderr.contains("--probe-listen"), "{ended:?}");
    }
    sidecar.signal(Signal::TERM);
    sidecar.end();
}

#[test]
fn probes_and_metrics_have_a_port_that_serves_nothing_else() {
    let place = Place::new();
    let token = place.path("token");
    std::fs::write(&token, "a-token-that-nobody-else-has-got").unwrap();
    let more = ["--token-file", token.to_str().unwrap(), "--probe-listen", "0.0.0.0:0"];
    let (mut running, address) = sidecar(&place.lock("a"), "node-1", &more);
    running.wait_for_note("node-1 leads");
    let url = format!("http://{}", address.replace("0.0.0.0", "127.0.0.1"));
    for (path, status) in [("/healthz", 200), ("/readyz", 200), ("/leading", 200), ("/metrics", 200)] {
        assert_eq!(ask(&format!("{url}{path}")).0, status, "{path}");
    }
    for path in ["/", "/leader", "/page.js", "/page.css"] {
        let (status, body) = ask(&format!("{url}{path}"));
        assert_eq!((status.as_u16(), body.as_str()), (404, ""), "{path}");
    }
    let mut command = leaderelect(["health", "--leading"]);
    command.env("LEADERELECT_PROBE_LISTEN", &address).env("LEADERELECT_REQUEST_TIMEOUT", "60s");
    // A proxy is for other machines.
    command.env("http_proxy", "http://127.0.0.1:1");
    assert_eq!(end_of(command).code, Some(0));
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, Some(0));
}
