//! TLS in front of a server without TLS.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

/// A TLS endpoint on a port of its own on the loopback interface, until it is dropped.
#[derive(Debug)]
pub struct TlsFront {
    address: SocketAddr,
    certificate: PathBuf,
    connections: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl TlsFront {
    /// Starts an endpoint in front of the server at `url`, such as `http://127.0.0.1:31234`, which speaks these
    /// protocols. The certificate, which no client trusts yet, is written into `directory`.
    pub async fn start(url: &str, protocols: &[&str], directory: &Path) -> Self {
        let server = url.trim_start_matches("http://").to_owned();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let certificate = directory.join("certificate.pem");
        std::fs::write(&certificate, made.cert.pem()).expect("a file");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the versions of this provider")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a certificate and its key");
        config.alpn_protocols = protocols.iter().map(|name| Vec::from(*name)).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port on the loopback interface");
        let address = listener.local_addr().expect("a bound listener has an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let serving = tokio::spawn(serve(listener, Arc::new(config).into(), server, Arc::clone(&connections)));
        Self { address, certificate, connections, serving }
    }

    /// The URL of the endpoint, such as `https://127.0.0.1:31234`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The file with the certificate.
    #[must_use]
    pub fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// The number of clients that have connected and trusted the certificate.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, server: String, connections: Arc<AtomicUsize>) {
    // Dropping the set closes the connections together with the endpoint.
    let mut running = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (acceptor, server, connections) = (acceptor.clone(), server.clone(), Arc::clone(&connections));
        running.spawn(async move {
            let mut client = acceptor.accept(client).await?;
            connections.fetch_add(1, Ordering::SeqCst);
            let mut server = TcpStream::connect(server).await?;
            copy_bidirectional(&mut client, &mut server).await
        });
    }
}
