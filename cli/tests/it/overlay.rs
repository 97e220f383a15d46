//! The file system of a container, without a volume: a candidate in another container has another lock.

use std::process::Command;

use crate::support::{PROGRAM, end_of};

/// Makes a root of layers as containers have it, in which `/volume` is another file system, and takes a lock in each.
const SCRIPT: &str = r#"
mount -t tmpfs tmpfs "$0" && cd "$0" && mkdir lower upper work root || exit 77
mkdir -p lower/proc lower/dev lower/volume lower/program
for each in /bin /lib /lib64 /usr /etc; do
  if [ -L $each ]; then cp -P $each lower$each; elif [ -d $each ]; then mkdir -p lower$each; fi
done
mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work root || exit 77
for each in /bin /lib /lib64 /usr /etc; do
  if [ -d $each ] && [ ! -L $each ]; then mount --rbind $each root$each || exit 77; fi
done
mount --rbind /proc root/proc && mount --rbind /dev root/dev && mount -t tmpfs tmpfs root/volume || exit 77
mount --rbind "${1%/*}" root/program || exit 77
for directory in "" /volume; do
  echo "in $directory/" >&2
  chroot root "/program/${1##*/}" run --lock "file://$directory/locks/a" -- echo worked || exit 1
done
"#;

#[test]
fn a_lock_beside_no_volume_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", SCRIPT]).arg(directory.path()).arg(PROGRAM);
    let ended = end_of(command);
    // A machine may allow no such namespaces.
    if ended.code == Some(77) || ended.stderr.contains("unshare failed") {
        println!("skipped: {}", ended.stderr);
        return;
    }
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "worked\nworked\n"), "{ended:?}");
    let (root, volume) = ended.stderr.split_once("in /volume/").unwrap();
    let warning = "this file system is that of one container";
    assert!(root.contains(warning) && !volume.contains(warning), "{ended:?}");
}
