//! One directory for several users, each in a process of its own.

#[cfg(target_os = "linux")]
mod neighbour;

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use leaderelection::implement::{ConditionalStore as _, Precondition};
use leaderelection_backends::file::FileStore;
use tempfile::{TempDir, tempdir};

const DIRECTORY: &str = "LEADERELECTION_TEST_DIRECTORY";
const GROUP: u32 = 54_321;

/// In a process of its own: writes the object once more.
#[tokio::test]
async fn write() {
    let Ok(directory) = env::var(DIRECTORY) else { return };
    let store = FileStore::new(directory);
    let found = store.get("locks/scheduler").await.unwrap();
    let precondition = found.map_or(Precondition::Absent, |found| Precondition::Matches(found.version));
    store.put("locks/scheduler", "body".into(), &precondition).await.unwrap();
}

/// A process that writes the object of `directory`.
fn writer(directory: &Path, umask: &str) -> Command {
    process("sharing::write", directory, umask)
}

/// A process that runs a test of this program on `directory`.
fn process(test: &str, directory: &Path, umask: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "umask $0; exec \"$@\"", umask]).arg(env::current_exe().unwrap());
    command.args(["--exact", test]).env(DIRECTORY, directory);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn directory(mode: u32) -> TempDir {
    let directory = tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
    directory
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn is_root() -> bool {
    tempdir().unwrap().path().metadata().unwrap().uid() == 0
}

#[test]
fn what_is_made_is_as_open_to_the_group_as_the_directory() {
    // A directory that only its owner may write in, one for its group, one for all, and one such as `/tmp`.
    for (given, umask, directories, file) in [
        (0o755, "022", 0o755, 0o644),
        (0o755, "077", 0o700, 0o600),
        (0o775, "022", 0o775, 0o664),
        (0o770, "077", 0o770, 0o660),
        (0o777, "077", 0o777, 0o666),
        (0o1777, "022", 0o755, 0o644),
    ] {
        let directory = directory(given);
        let output = writer(directory.path(), umask).output().unwrap();
        assert!(output.status.success(), "{given:o}, {umask}: {}", said(&output));
        for made in ["locks", "locks/scheduler", "locks/scheduler/@", "locks/scheduler/@/tmp"] {
            assert_eq!(mode(&directory.path().join(made)), directories, "{given:o}, {umask}: {made}");
        }
        assert_eq!(mode(&directory.path().join("locks/scheduler/@/1")), file, "{given:o}, {umask}");
    }
}

/// A directory for the group, as the documentation tells to make it. The result is `None` for all but root, because
/// nobody else can become two users.
fn directory_of_the_group() -> Option<TempDir> {
    if !is_root() {
        println!("skipped: only root can become two users");
        return None;
    }
    let directory = tempdir().unwrap();
    chown(directory.path(), None, Some(GROUP)).unwrap();
    assert!(Command::new("chmod").arg("g+rwxs").arg(directory.path()).status().unwrap().success());
    Some(directory)
}

#[test]
fn users_of_one_group_replace_each_others_objects() {
    let Some(directory) = directory_of_the_group() else { return };
    for (user, umask) in [(54_001, "022"), (54_002, "077"), (54_001, "077"), (54_002, "022")] {
        let output = writer(directory.path(), umask).uid(user).gid(GROUP).output().unwrap();
        assert!(output.status.success(), "user {user}: {}", said(&output));
    }
    let generations = directory.path().join("locks/scheduler/@");
    assert_eq!(generations.join("4").metadata().unwrap().uid(), 54_002);
    assert_eq!(fs::read_dir(&generations).unwrap().count(), 2, "the generations of others are removed");

    let stranger = writer(directory.path(), "022").uid(54_003).gid(GROUP + 1).output().unwrap();
    assert!(!stranger.status.success() && said(&stranger).contains("permission denied"), "{}", said(&stranger));
}
