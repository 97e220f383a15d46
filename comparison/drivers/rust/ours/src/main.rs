//! A candidate: this library's elector, with or without peers, or a session.

use std::time::Duration;

use clap::Parser;
use comparison_work::{Log, Options, on_sigterm};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, ObjectLock, Session, Timings,
};
use leaderelection_backends::url::Location;
use leaderelection_peers::{DEFAULT_PATH, Peers, SharedKey};

/// The time in which followers learn that the lease is released.
const GRACE: Duration = Duration::from_secs(1);

/// Competes for a lock until SIGTERM.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    options: Options,
    /// The key by which the candidates get messages from their leader. Without a key, they only read the lock
    #[arg(long, conflicts_with = "session")]
    peer_key: Option<String>,
    /// Lead through a session. The lock is then the prefix of the sessions
    #[arg(long)]
    session: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let Args { options, peer_key, session } = Args::parse();
    if session { lead_through_a_session(options).await } else { lead(options, peer_key).await }
}

async fn lead(options: Options, peer_key: Option<String>) -> anyhow::Result<()> {
    let place: Location = options.lock.parse()?;
    let log = options.open()?;
    let lock = ObjectLock::new(place.open().await?, place.key(), &options.identity);
    let callbacks = callbacks(&log, options.work);
    let config = LeaderElectionConfig::builder(lock, callbacks).timings(timings(&options)?);
    let Some(key) = peer_key else {
        log.ready();
        return Ok(DefaultLeaderElector::new(config.build()?).campaign(on_sigterm()?.cancelled_owned()).await?);
    };
    let here = "127.0.0.1:0".parse()?;
    let peers = Peers::builder().key(SharedKey::new(&key)?).plain_http(true);
    let peers = peers.allow("127.0.0.1".parse()?).listen(here).build()?;
    let address = peers.listens_at().ok_or_else(|| anyhow::anyhow!("the peers do not listen"))?;
    let elector = DefaultLeaderElector::new(config.advertise(format!("http://{address}{DEFAULT_PATH}")).build()?);
    let _attached = peers.attach(&elector)?;
    log.ready();
    elector.campaign(on_sigterm()?.cancelled_owned()).await?;
    peers.finish(GRACE).await;
    Ok(())
}

async fn lead_through_a_session(options: Options) -> anyhow::Result<()> {
    let place: Location = options.lock.parse()?;
    let log = options.open()?;
    let session = Session::builder(place.open().await?, place.key(), &options.identity);
    let session = session.timings(timings(&options)?).build()?;
    let elector = session.elector("lock", callbacks(&log, options.work))?;
    let asked = on_sigterm()?;
    let candidacy = asked.clone();
    log.ready();
    let (session, elector) =
        tokio::join!(session.run(asked.cancelled_owned()), elector.campaign(candidacy.cancelled_owned()));
    session?;
    Ok(elector?)
}

fn timings(options: &Options) -> anyhow::Result<Timings> {
    Ok(Timings::new(options.lease, options.renew, options.retry)?)
}

/// The work of a leader: every entry is preceded by a check.
fn callbacks(log: &Log, period: Duration) -> LeaderCallbacks {
    let log = log.clone();
    LeaderCallbacks::new().on_start_leading(move |leadership: Leadership| {
        let log = log.clone();
        async move {
            let token = Some(leadership.fencing_token().into());
            log.work(token, period, || leadership.is_valid(), async { drop(leadership.lost().await) }).await;
        }
    })
}
