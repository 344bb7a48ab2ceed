//! Which file system a path is on. SQLite's write-ahead log needs memory shared by all its users, which no network
//! file system gives: two machines on one file would each see half of it.

use std::path::{Path, PathBuf};

/// The kind of network file system `path` is on, if it is on one; unknown counts as local.
pub(super) fn network_file_system(path: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    kind_of(&mounts, path).filter(|kind| is_network(kind)).map(str::to_owned)
}

fn is_network(kind: &str) -> bool {
    ["nfs", "smb"].iter().any(|start| kind.starts_with(start))
        || ["cifs", "afs", "ceph", "fuse.ceph", "fuse.sshfs", "glusterfs", "fuse.glusterfs", "lustre"].contains(&kind)
}

/// The file system of the innermost mount that holds `path`; of two mounts at one place, the later covers the other.
fn kind_of<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mounts = mounts.lines().filter_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let point = PathBuf::from(unescaped(mount.split(' ').nth(4)?));
        path.starts_with(&point).then_some((point.components().count(), system.split(' ').next()?))
    });
    mounts.max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind)
}

/// Undoes the octal escapes of blanks in mount points.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_and_latest_mount_counts() {
        let mounts = "\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:5 / /home rw - nfs4 server:/home rw,vers=4.2
23 22 0:6 / /home/me/my\\040disk rw master:1 - xfs /dev/sdb rw
24 21 0:7 / /over rw - ext4 /dev/sdc rw
25 24 0:8 / /over rw - fuse.sshfs host: rw";
        let kind = |path| kind_of(mounts, Path::new(path)).unwrap();
        assert_eq!(kind("/var/lib/x.db"), "ext4");
        assert_eq!(kind("/home/me/x.db"), "nfs4");
        assert_eq!(kind("/homes/x.db"), "ext4");
        assert_eq!(kind("/home/me/my disk/x.db"), "xfs");
        assert_eq!(kind("/over/x.db"), "fuse.sshfs");
        assert!(["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs"].into_iter().all(is_network));
        assert!(!["ext4", "9p", "tmpfs", "overlay", "fuse.portal"].into_iter().any(is_network));
    }
}
