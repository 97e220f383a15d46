//! `run` inside a cgroup of its own, with processes that move to another cgroup: neither makes a difference.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use leaderelection_integration_tests::servers::unique_name;
use rustix::process::Signal;

use crate::descendants::{STUBBORN, ways};
use crate::pipe::Pipe;
use crate::support::{LONG, PATIENCE, Place, Running, leaderelect, run};

/// Two cgroups of this test's, below one that everybody may use.
struct Cgroups {
    above: PathBuf,
}

impl Cgroups {
    /// `None`, with a word about it, if no cgroup can be made here.
    fn new() -> Option<Self> {
        let made = Self::own().ok_or_else(|| "no hierarchy of version 2 is mounted".to_owned()).and_then(|own| {
            let above = own.join(format!("leaderelect-{}", unique_name()));
            fs::create_dir(&above).map_err(|error| format!("{}: {error}", above.display()))?;
            Ok(Self { above })
        });
        let cgroups = made.inspect_err(|error| println!("skipped: no cgroup can be made: {error}")).ok()?;
        for name in ["leader", "elsewhere"] {
            fs::create_dir(cgroups.path(name)).unwrap();
            fs::set_permissions(cgroups.path(name).join("cgroup.procs"), Permissions::from_mode(0o666)).unwrap();
        }
        // Whoever moves a process needs the right for the cgroup above both.
        fs::set_permissions(cgroups.above.join("cgroup.procs"), Permissions::from_mode(0o666)).unwrap();
        Some(cgroups)
    }

    /// The cgroup of this process.
    fn own() -> Option<PathBuf> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mounted = mounts.lines().find_map(|line| match *line.split(' ').collect::<Vec<_>>() {
            [_, path, "cgroup2", ..] => Some(path.to_owned()),
            _ => None,
        })?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
        Some(Path::new(&mounted).join(own))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.above.join(name)
    }

    fn members(&self, name: &str) -> String {
        fs::read_to_string(self.path(name).join("cgroup.procs")).unwrap()
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        // A cgroup cannot be removed before the last zombie in it is gone.
        let deadline = Instant::now() + PATIENCE;
        for path in [self.path("leader"), self.path("elsewhere"), self.above.clone()] {
            while fs::remove_dir(&path).is_err() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

struct Case {
    way: &'static str,
    cgroups: Cgroups,
    place: Place,
    pipe: Pipe,
    running: Running,
}

/// Leaders in a cgroup, each with a process that is started in one of the ways, has moved to another cgroup, and ignores
/// SIGTERM.
fn leaders() -> Vec<Case> {
    let case = |way| {
        let cgroups = Cgroups::new()?;
        let place = Place::new();
        let pipe = Pipe::new(&place);
        let elsewhere = cgroups.path("elsewhere").join("cgroup.procs");
        let inner = format!("echo $$ >'{}' || exit; {STUBBORN}", elsewhere.display());
        let command = format!("exec 4>\"$0\" >/dev/null 2>&1; {way}");
        let lock = place.lock("a");
        let program = leaderelect(run(&lock, &LONG, &["bash", "-c", &command, &pipe.path, &inner]));
        let running = Running::of(inside(&cgroups.path("leader"), &program));
        pipe.wait_for_start();
        assert_ne!(cgroups.members("leader"), "", "{way}");
        assert_ne!(cgroups.members("elsewhere"), "", "{way}");
        Some(Case { way, cgroups, place, pipe, running })
    };
    ways().into_iter().map_while(case).collect()
}

/// The program, which joins a cgroup before it starts.
fn inside(cgroup: &Path, program: &Command) -> Command {
    let mut joining = Command::new("sh");
    joining.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]).arg(cgroup);
    joining.arg(program.get_program()).args(program.get_args()).stdin(std::process::Stdio::null());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => joining.env(name, value),
            None => joining.env_remove(name),
        };
    }
    joining
}

#[test]
fn whoever_moved_to_another_cgroup_is_ended_before_the_release() {
    let leaders = leaders();
    for case in &leaders {
        case.running.signal(Signal::TERM);
    }
    for Case { way, place, pipe, running, cgroups } in leaders {
        pipe.wait_for_end();
        let ended = running.end();
        assert!(ended.code.is_some(), "{way}: {ended:?}");
        assert!(place.record("a").is_released(), "{way}: {ended:?}");
        assert_eq!((cgroups.members("leader"), cgroups.members("elsewhere")), Default::default(), "{way}");
    }
}

#[test]
fn whoever_moved_to_another_cgroup_does_not_outlive_a_run_that_is_killed() {
    for Case { pipe, running, .. } in leaders() {
        running.signal(Signal::KILL);
        pipe.wait_for_end();
        assert_eq!(running.end().code, None);
    }
}

#[test]
fn whoever_is_in_a_frozen_cgroup_is_ended_before_the_release() {
    let leaders = leaders();
    for case in &leaders {
        fs::write(case.cgroups.path("elsewhere").join("cgroup.freeze"), "1").unwrap();
        case.running.signal(Signal::TERM);
    }
    for Case { way, place, pipe, running, .. } in leaders {
        pipe.wait_for_end();
        let ended = running.end();
        assert!(ended.code.is_some(), "{way}: {ended:?}");
        assert!(place.record("a").is_released(), "{way}: {ended:?}");
    }
}
