//! A process that increments a counter in a file store, concurrently with others: the tests stop and kill it.
//!
//! `file-counter <directory> <writer> <times> [hoard]` increments the writer's own entry in the object
//! `counter`. That object contains `writer=count` for every writer. The program prints each count whose write
//! was acknowledged or read back. With `hoard`, the program first opens files until the system refuses more.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::iter;

use leaderelection::StoreErrorKind;
use leaderelection::implement::{ConditionalStore, Precondition};
use leaderelection_backends::file::FileStore;

type Counts = BTreeMap<String, u64>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [directory, writer, times, rest @ ..] = arguments.as_slice() else {
        return Err("usage: file-counter <directory> <writer> <times> [hoard]".into());
    };
    let store = FileStore::new(directory);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    // The thread starts before the process runs out of files.
    runtime.block_on(async { tokio::task::spawn_blocking(|| {}).await })?;
    let hoard: Vec<File> = rest.iter().flat_map(|_| iter::from_fn(|| File::open("/dev/null").ok())).collect();
    let outcome = runtime.block_on(count(&store, writer, times.parse()?));
    drop(hoard);
    outcome
}

async fn count(store: &FileStore, writer: &str, times: u64) -> Result<(), Box<dyn Error>> {
    for _ in 0..times {
        let count = increment(store, writer).await?;
        let mut stdout = std::io::stdout();
        writeln!(stdout, "{count}")?;
        stdout.flush()?;
    }
    Ok(())
}

async fn increment(store: &FileStore, writer: &str) -> Result<u64, Box<dyn Error>> {
    let mut attempted = None;
    loop {
        let found = store.get("counter").await?;
        let mut counts = found.as_ref().map_or(Ok(Counts::new()), |object| parse(&object.body))?;
        let count = counts.get(writer).copied().unwrap_or(0);
        // An earlier attempt with an ambiguous answer has taken effect after all.
        if attempted == Some(count) {
            return Ok(count);
        }
        counts.insert(writer.to_owned(), count + 1);
        let precondition = found.map_or(Precondition::Absent, |object| Precondition::Matches(object.version));
        match store.put("counter", print(&counts).into(), &precondition).await {
            Ok(_) => return Ok(count + 1),
            Err(error) if error.kind() == StoreErrorKind::Conflict => {}
            Err(error) if error.kind() == StoreErrorKind::Ambiguous => attempted = Some(count + 1),
            Err(error) => return Err(format!("{:?}: {error}", error.kind()).into()),
        }
    }
}

fn parse(body: &[u8]) -> Result<Counts, Box<dyn Error>> {
    let entry = |entry: &str| {
        let (writer, count) = entry.split_once('=').ok_or_else(|| format!("{entry:?} is not a count"))?;
        Ok((writer.to_owned(), count.parse()?))
    };
    str::from_utf8(body)?.split_whitespace().map(entry).collect()
}

fn print(counts: &Counts) -> String {
    counts.iter().map(|(writer, count)| format!("{writer}={count}\n")).collect()
}
