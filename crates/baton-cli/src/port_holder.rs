//! Which process of this machine listens at a port, as far as the system tells this user.

use std::{fs, net::SocketAddr, path::Path};

/// The state of a socket that listens, in the kernel's tables.
const LISTENS: &str = "0A";

/// The process that listens at this port, as `name (process 4711)`; nothing if that cannot be known: it is another user's, or
/// the system has no /proc.
pub(crate) fn of(address: SocketAddr) -> Option<String> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening(&table, address.port()))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let mut processes = processes.filter(|folder| is_numbered(folder));
    let process = processes.find(|process| holds(process, &sockets))?;
    let name = fs::read_to_string(process.join("comm")).ok()?;
    Some(format!("{} (process {})", name.trim_end(), process.file_name()?.to_str()?))
}

/// Whether a folder of /proc is a process by its number; `self` is none.
fn is_numbered(folder: &Path) -> bool {
    folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.parse::<u32>().is_ok())
}

/// The inodes of the sockets in such a table that listen at this port.
fn listening(table: &str, port: u16) -> Vec<String> {
    let at = format!(":{port:04X}");
    let sockets = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next()?, fields.nth(1)?);
        let inode = fields.nth(5)?;
        (local.ends_with(&at) && state == LISTENS).then(|| inode.to_owned())
    });
    sockets.collect()
}

/// Whether a process has one of these sockets open.
fn holds(process: &Path, sockets: &[String]) -> bool {
    let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let mut open = files.filter_map(|file| fs::read_link(file.path()).ok());
    open.any(|file| file.to_str().is_some_and(|file| sockets.iter().any(|socket| socket == file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_port_is_this_process_or_unknown() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        if cfg!(target_os = "linux") {
            let told = of(address).unwrap();
            assert!(told.ends_with(&format!("(process {})", std::process::id())), "{told}");
        }
        drop(listener);
        assert_eq!(of(address), None);
    }
}
