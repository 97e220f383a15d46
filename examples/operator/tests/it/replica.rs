//! A replica of the operator as a process.

use std::path::Path;
use std::process::Command;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use leaderelection_integration_tests::program::{Program, TIMING};

pub(crate) struct Replica {
    pub(crate) program: Program,
    url: String,
}

impl Replica {
    pub(crate) fn start(kubeconfig: &Path, elected_on: &str, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_operator"));
        command.args([elected_on, "--listen", "127.0.0.1:0"]).args(TIMING).args(options).env("KUBECONFIG", kubeconfig);
        let mut program = Program::start(&mut command);
        let line = program.wait_for_line("serving on ");
        Self { program, url: line.trim_start_matches("serving on ").to_owned() }
    }

    /// The status and the body that the replica answers.
    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
        let response = client.get(format!("{}{path}", self.url).parse().unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}
