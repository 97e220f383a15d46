//! A neighbour in a shared directory, who puts links to the home of another user in the place of everything.

use std::env;
use std::fs::{self, File, Permissions};
use std::mem::MaybeUninit;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, Precondition};
use leaderelection_backends::file::{CreateOnlyDirectory, FileStore};
use leaderelection_sequenced::CreateOnlyStore as _;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tempfile::{TempDir, tempdir};

use super::{DIRECTORY, GROUP, directory_of_the_group, is_root, mode, process, said};

const VICTIM: u32 = 54_001;
const NEIGHBOUR: u32 = 54_002;
const HOME: &str = "LEADERELECTION_TEST_HOME";
const WRITES: &str = "LEADERELECTION_TEST_WRITES";

/// The number of rounds in which something has to happen in a home before the store is to blame.
const ROUNDS: usize = 3;

/// In a process of its own: writes through both stores, some of it to directories that have to be made, and prints how
/// much of it worked.
#[tokio::test]
async fn write_often() {
    let (Ok(directory), Ok(writes)) = (env::var(DIRECTORY), env::var(WRITES)) else { return };
    let writes: u64 = writes.parse().unwrap();
    let (store, sequenced) = (FileStore::new(&directory), CreateOnlyDirectory::new(&directory));
    let (mut written, mut last) = (0, "nothing failed".to_owned());
    for number in 0..writes {
        let key = if number % 4 == 0 { format!("locks/{number}") } else { "locks/scheduler".to_owned() };
        let one = async {
            let found = store.get(&key).await?;
            let precondition = found.map_or(Precondition::Absent, |found| Precondition::Matches(found.version));
            store.put(&key, "body".into(), &precondition).await?;
            if number % 8 == 0 {
                store.discard(&key).await?;
            }
            store.list("").await?;
            sequenced.create(&format!("history/{number}"), "body".into()).await?;
            sequenced.read(&format!("history/{number}")).await?;
            sequenced.list("", None).await?;
            sequenced.remove(&format!("history/{number}")).await
        };
        match one.await {
            Ok(()) => written += 1,
            Err(error) => last = error.to_string(),
        }
    }
    println!("{written} of {writes}; {last}");
}

/// In a process of its own, until it is killed: replaces each directory by a link, for a moment.
#[test]
fn swap() {
    let (Ok(directory), Ok(home)) = (env::var(DIRECTORY), env::var(HOME)) else { return };
    loop {
        for path in directories(Path::new(&directory)) {
            let _ = replace(&path, Path::new(&home));
        }
    }
}

fn replace(path: &Path, home: &Path) -> std::io::Result<()> {
    let aside = path.with_extension("aside");
    fs::rename(path, &aside)?;
    symlink(home, path)?;
    std::thread::yield_now();
    fs::remove_file(path)?;
    fs::rename(&aside, path)
}

/// All directories below `path`; a link is none.
fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let found = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
    found.flat_map(|found| [directories(&found), vec![found]].concat()).collect()
}

/// The home of the victim, and a watch over all that happens in it.
struct Home {
    directory: TempDir,
    watch: rustix::fd::OwnedFd,
}

impl Home {
    /// Makes a home in which every path that the store could take by mistake exists, with an old file that a sweep would
    /// remove.
    fn new() -> Self {
        let directory = tempdir().unwrap();
        let folders = ["", "tmp", "@", "@/tmp", "scheduler", "scheduler/@", "scheduler/@/tmp", ".drafts", "history"];
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        for folder in folders.map(|folder| directory.path().join(folder)) {
            fs::create_dir_all(&folder).unwrap();
            File::create(folder.join("letter")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        for folder in folders.map(|folder| directory.path().join(folder)) {
            for path in [folder.join("letter"), folder] {
                chown(&path, Some(VICTIM), Some(VICTIM)).unwrap();
                fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
                inotify::add_watch(&watch, &path, WatchFlags::ALL_EVENTS).unwrap();
            }
        }
        Self { directory, watch }
    }

    /// Asserts that nothing happens in the home while `round` runs. Others do something there, and not in one round after
    /// the other: whoever walks over all files of the machine opens this home too, and a process that another test has
    /// just forked closes the letter when it becomes another program.
    fn stays_untouched(&self, during: &str, mut round: impl FnMut() -> String) {
        let mut rounds = (0..ROUNDS).map(|_| {
            self.events();
            let said = round();
            (self.events(), said)
        });
        let touched = rounds.try_fold(String::new(), |_, (events, said)| match events[..] {
            [] => Err(()),
            _ => Ok(format!("{events:?}; {said}")),
        });
        assert!(touched.is_err(), "{during}: something happened outside the store: {touched:?}");
    }

    /// Returns what has happened since the last call.
    fn events(&self) -> Vec<String> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.watch, &mut buffer);
        let event = |event: inotify::Event<'_>| format!("{:?} {:?}", event.events(), event.file_name());
        let found = std::iter::from_fn(|| reader.next().ok().map(event));
        // Many events are alike.
        found.take(20).collect()
    }
}

/// Lets the victim write so often, and returns how often that worked, and what the victim printed.
fn victim(directory: &Path, writes: u64) -> (u64, String) {
    let mut victim = process("sharing::neighbour::write_often", directory, "022");
    victim.arg("--nocapture").env(WRITES, writes.to_string()).uid(VICTIM).gid(GROUP);
    let said = said(&victim.output().unwrap());
    let Some((written, _)) = said.split_once(&format!(" of {writes};")) else { panic!("{said}") };
    (written.rsplit(|found: char| !found.is_ascii_digit()).next().unwrap().parse().unwrap(), said)
}

#[test]
fn a_link_leads_nowhere_whatever_it_replaces() {
    let home = Home::new();
    for replaced in ["locks", "locks/scheduler", "locks/scheduler/@", "locks/scheduler/@/tmp", ".drafts", "history"] {
        let Some(directory) = directory_of_the_group() else { return };
        let path = directory.path().join(replaced);
        let (written, said) = victim(directory.path(), 6);
        assert_eq!(written, 6, "{said}");
        fs::rename(&path, path.with_extension("aside")).unwrap();
        symlink(home.directory.path(), &path).unwrap();

        home.stays_untouched(replaced, || {
            let (written, said) = victim(directory.path(), 6);
            assert!(written < 6 && said.contains("a symbolic link"), "{replaced}: {said}");
            said
        });
    }
}

/// A link of the user leads through a directory of the neighbour, who puts another link there.
#[tokio::test]
async fn a_link_through_a_directory_does_not_lead_out_of_it() {
    if !is_root() {
        return println!("skipped: only root can give a directory away");
    }
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    if place.path().ancestors().any(|directory| mode(directory) & 0o022 != 0) {
        return println!("skipped: others may write on the way to {}", place.path().display());
    }
    let [home, theirs, link] = ["home", "theirs", "link"].map(|name| place.path().join(name));
    for directory in [&home, &theirs.join("data")] {
        fs::create_dir_all(directory).unwrap();
    }
    chown(&theirs, Some(NEIGHBOUR), None).unwrap();
    symlink("theirs/../theirs/data", &link).unwrap();
    let write = async || FileStore::new(&link).put("lock", "body".into(), &Precondition::Absent).await;
    write().await.unwrap();
    assert!(theirs.join("data/lock/@/1").exists());

    fs::rename(theirs.join("data"), theirs.join("aside")).unwrap();
    symlink(&home, theirs.join("data")).unwrap();
    let error = write().await.unwrap_err().to_string();
    assert!(error.contains("a symbolic link"), "{error}");
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0, "something happened outside the store");
}

#[test]
fn a_neighbour_who_swaps_links_during_writes_leads_nowhere() {
    let Some(directory) = directory_of_the_group() else { return };
    let home = Home::new();
    let mut neighbour = process("sharing::neighbour::swap", directory.path(), "022");
    let mut neighbour = neighbour.env(HOME, home.directory.path()).uid(NEIGHBOUR).gid(GROUP).spawn().unwrap();
    home.stays_untouched("swapping", || victim(directory.path(), 192).1);
    let is_still_swapping = neighbour.try_wait().unwrap().is_none();
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
    assert!(is_still_swapping);
}
