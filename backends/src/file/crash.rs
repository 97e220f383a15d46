//! The points between two steps on the disk at which a process may die. Only tests let it die there.

/// Marks the moment between two steps on the disk.
#[cfg(not(test))]
pub(super) fn point() {}

#[cfg(test)]
pub(super) use tests::point;

#[cfg(test)]
mod sequenced;

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, ExitStatus, Stdio, exit};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::{env, fs};

    use leaderelection::StoreErrorKind;
    use leaderelection::implement::{Precondition, Version};

    use crate::file::object::{DELETED, ObjectDirectory};

    const TEST: &str = "file::crash::tests::a_process_that_dies_between_any_two_steps_spoils_nothing";
    /// The number of the point at which this process dies, and the directory of its store.
    const DIES_AT: &str = "LEADERELECTION_TEST_DIES_AT";
    const DIRECTORY: &str = "LEADERELECTION_TEST_DIRECTORY";
    const BODY: &str = "LEADERELECTION_TEST_BODY";
    /// The status of a process that died at its point.
    pub(super) const DIED: i32 = 77;

    /// The number of points until this process dies; 0 if it does not.
    static POINTS_LEFT: AtomicU32 = AtomicU32::new(0);

    /// Ends the process without any destructor, as `SIGKILL` would, if this is the point for that.
    pub(in crate::file) fn point() {
        if POINTS_LEFT.load(Ordering::Relaxed) > 0 && POINTS_LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
            exit(DIED);
        }
    }

    fn object(directory: &Path) -> ObjectDirectory {
        ObjectDirectory::new(directory, "locks/key", "file:///locks/key".to_owned())
    }

    /// Writes as the next writer that reads the object would; an empty body deletes. Returns the version.
    fn write(directory: &Path, body: &str) -> u64 {
        let object = object(directory);
        let found = object.read().unwrap();
        let condition = found.map_or(Precondition::Absent, |found| Precondition::Matches(found.version));
        object.write(body.as_bytes(), &condition).unwrap().as_str().parse().unwrap()
    }

    /// Runs `test` in a process of its own, which writes and dies at the `nth` point.
    pub(super) fn write_and_die(test: &str, directory: &Path, body: &str, nth: u32) -> ExitStatus {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", test]).stdout(Stdio::null()).stderr(Stdio::null());
        child.env(DIES_AT, nth.to_string()).env(DIRECTORY, directory).env(BODY, body).status().unwrap()
    }

    fn body(directory: &Path) -> Option<(String, u64)> {
        let found = object(directory).read().unwrap()?;
        let version = found.version.as_str().parse().unwrap();
        Some((String::from_utf8(found.body.to_vec()).unwrap(), version))
    }

    /// The actions of a test before the write that the process does not survive: so many writes, and perhaps a deletion.
    struct History {
        writes: u64,
        deleted: bool,
    }

    /// Lets the process die at every point of a write of `next`. Returns the number of points.
    fn dies_everywhere(History { writes, deleted }: History, next: &str) -> u32 {
        for nth in 1.. {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path();
            for number in 1..=writes.min(2) {
                assert_eq!(write(path, "an earlier body"), number);
            }
            if writes > 2 {
                // As after so many writes, of which the last alone is left.
                let generations = path.join("locks/key/@");
                fs::rename(generations.join("2"), generations.join(writes.to_string())).unwrap();
            }
            let mut newest = writes;
            if deleted {
                object(path).write(DELETED, &Precondition::Matches(Version::new(writes.to_string()))).unwrap();
                newest += 1;
            }
            let before = body(path);
            let status = write_and_die(TEST, path, next, nth);

            let after = body(path);
            let written = (!next.is_empty()).then(|| (next.to_owned(), newest + 1));
            match status.code() {
                Some(0) => assert_eq!(after, written, "an acknowledged write is there"),
                Some(DIED) => assert!(after == before || after == written, "point {nth}: {after:?}"),
                _ => panic!("point {nth}: {status}"),
            }
            // The store goes on, and no version comes back.
            let is_committed = after == written && after != before;
            let last = if is_committed { newest + 1 } else { newest };
            let version = write(path, "of the next writer");
            assert!(version > last, "point {nth}: version {version} after {last}");
            assert_eq!(body(path), Some(("of the next writer".to_owned(), version)), "point {nth}");
            let stale = Precondition::Matches(Version::new(last.to_string()));
            assert_eq!(object(path).write(b"late", &stale).unwrap_err().kind(), StoreErrorKind::Conflict);
            if status.success() {
                return nth - 1;
            }
        }
        unreachable!("a write has a last point")
    }

    /// Lets this process do the work in which it has to die, if it was started for that.
    pub(super) fn die(work: impl FnOnce(&Path, &str)) {
        if let Ok(nth) = env::var(DIES_AT) {
            let (directory, body) = (env::var_os(DIRECTORY).unwrap(), env::var(BODY).unwrap());
            POINTS_LEFT.store(nth.parse().unwrap(), Ordering::Relaxed);
            work(Path::new(&directory), &body);
            exit(0);
        }
    }

    #[test]
    fn a_process_that_dies_between_any_two_steps_spoils_nothing() {
        die(|directory, body| {
            write(directory, body);
        });
        let create = dies_everywhere(History { writes: 0, deleted: false }, "the first");
        let update = dies_everywhere(History { writes: 2, deleted: false }, "an update");
        let delete = dies_everywhere(History { writes: 2, deleted: false }, "");
        let again = dies_everywhere(History { writes: 2, deleted: true }, "after a deletion");
        let sweep = dies_everywhere(History { writes: 63, deleted: false }, "with a sweep");
        // The first write makes directories, and syncs them.
        assert!(create > update && update >= 7, "{create} and {update} points");
        assert!(delete >= 7 && again >= 7 && sweep > update, "{delete}, {again} and {sweep} points");
    }
}
