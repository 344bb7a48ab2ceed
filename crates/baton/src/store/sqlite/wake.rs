//! Waking those who wait: by a list within the process, by a datagram across processes.
//!
//! Every store that has ever waited binds a socket in the folder `<store>-wake`; whoever commits something that wakes a
//! session sends one datagram to each, and the store whose session it is puts the queue on that session's list. Sending
//! never blocks: what does not fit a socket's buffer is lost. Sockets of processes that died are removed by the
//! next sender, and while somebody waits or when a listener ends. A lost wake-up costs one wait, at most a second. Where no socket can be bound, a wait ends after 5 ms.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::{Site, location};
use crate::{
    message::SessionId,
    store::{MAX_WAIT, wake_up::WakeUp},
};

/// How long one waits who cannot be woken.
const DEAF_WAIT: Duration = Duration::from_millis(5);

/// Whom to wake, and for what.
pub(super) type WakeUps = BTreeSet<(SessionId, WakeUp)>;

/// WakeUps and hears, for one store of this process.
pub(super) struct WakeChannel {
    site: Arc<Site>,
    folder: OnceLock<PathBuf>,
    ear: Arc<Ear>,
    #[cfg(unix)]
    post: Mutex<Option<post::Post>>,
}

/// What the listening thread shares with those who wait.
#[derive(Default)]
struct Ear {
    heard: Mutex<Heard>,
    /// Woken when somebody begins to wait, and at the end.
    begun: Condvar,
    woken: Notify,
}

#[derive(Default)]
struct Heard {
    waiting: usize,
    over: bool,
    /// The wake-up lists of the sessions that joined through this store.
    lists: BTreeMap<SessionId, BTreeSet<WakeUp>>,
}

impl Ear {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts queues on the lists of those of these sessions that are of this store.
    fn wake<'a>(&self, wake_ups: impl IntoIterator<Item = (SessionId, &'a WakeUp)>) {
        let mut heard = self.heard();
        let mut woken = false;
        for (session, queue) in wake_ups {
            if let Some(list) = heard.lists.get_mut(&session) {
                woken |= list.insert(queue.clone());
            }
        }
        drop(heard);
        if woken {
            self.woken.notify_waiters();
        }
    }

    /// What is on a list, if anything has happened to it.
    fn take(&self, session: SessionId) -> Option<BTreeSet<WakeUp>> {
        let mut heard = self.heard();
        let list = heard.lists.entry(session).or_default();
        (!list.is_empty()).then(|| std::mem::take(list))
    }
}

/// Somebody waits, until dropped.
struct Listening<'a>(&'a Ear);

impl<'a> Listening<'a> {
    fn begin(ear: &'a Ear) -> Self {
        ear.heard().waiting += 1;
        ear.begun.notify_all();
        Self(ear)
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.heard().waiting -= 1;
    }
}

impl WakeChannel {
    pub(super) fn new(site: Arc<Site>) -> Self {
        Self {
            site,
            folder: OnceLock::new(),
            ear: Arc::default(),
            #[cfg(unix)]
            post: Mutex::new(None),
        }
    }

    /// Begins a list for a session that joins through this store.
    pub(super) fn know(&self, session: SessionId) {
        self.ear.heard().lists.entry(session).or_default();
    }

    /// Forgets a session that leaves.
    pub(super) fn forget(&self, session: SessionId) {
        self.ear.heard().lists.remove(&session);
    }

    /// Wakes those of this store.
    pub(super) fn wake_here(&self, wake_ups: &WakeUps) {
        self.ear.wake(wake_ups.iter().map(|(session, queue)| (*session, queue)));
    }

    /// Waits until there is something on the session's list, at most for a second; takes what is on it.
    pub(super) async fn wait(&self, session: SessionId) -> BTreeSet<WakeUp> {
        let _waiting = Listening::begin(&self.ear);
        let limit = if self.listen() { MAX_WAIT } else { DEAF_WAIT };
        let woken = async {
            loop {
                let next = self.ear.woken.notified();
                tokio::pin!(next);
                next.as_mut().enable();
                if let Some(queues) = self.ear.take(session) {
                    return queues;
                }
                next.await;
            }
        };
        tokio::time::timeout(limit, woken).await.unwrap_or_default()
    }

    /// Where the sockets of this store are: beside the file, or in the folder for temporary files if their paths
    /// would be too long.
    fn folder(&self) -> &PathBuf {
        self.folder.get_or_init(|| folder_of(&location::real_path(&self.site.path)))
    }
}

fn folder_of(path: &Path) -> PathBuf {
    let beside = location::sidecar(path, "-wake");
    if beside.as_os_str().len() <= 80 {
        return beside;
    }
    let digest = crate::message::Digest::of(path.as_os_str().as_encoded_bytes()).to_string();
    std::env::temp_dir().join(format!("baton-{}", digest.get(..20).unwrap_or_default()))
}

/// Whether a store that has waited for messages at `path` is still there: then its process lives.
#[cfg(unix)]
pub(super) fn is_listened_to(path: &Path) -> bool {
    let Ok(sockets) = std::fs::read_dir(folder_of(path)) else { return false };
    let asks = std::os::unix::net::UnixDatagram::unbound();
    asks.is_ok_and(|asks| sockets.flatten().any(|socket| asks.connect(socket.path()).is_ok()))
}

/// Nobody can be told, so nobody listens.
#[cfg(not(unix))]
pub(super) fn is_listened_to(_: &Path) -> bool {
    false
}

#[cfg(not(unix))]
impl WakeChannel {
    /// Nobody can be told.
    pub(super) fn wake_afar(&self, _: &WakeUps) {}

    fn listen(&self) -> bool {
        false
    }
}

#[cfg(unix)]
mod post {
    //! The sockets.

    use std::{
        fs,
        io::{self, ErrorKind},
        os::unix::{fs::FileTypeExt as _, net::UnixDatagram},
        path::PathBuf,
        sync::{Arc, PoisonError},
        thread,
        time::{Duration, Instant},
    };

    use super::{Ear, WakeChannel, WakeUps};
    use crate::message::{Name, SessionId};

    /// The longest datagram; what is longer goes in several. Long, because a socket keeps only a handful unread: a burst
    /// over a thousand queues must not lose most of its wake-ups.
    const MAX_DATAGRAM: usize = 32 << 10;
    /// How long a socket may refuse because it is just being made.
    const NEW: Duration = Duration::from_secs(1);
    /// How often dead sockets are looked for while somebody waits.
    const SWEEP_EACH: Duration = Duration::from_secs(2);
    /// How many sockets one sweep looks at.
    const MOST_SWEPT: usize = 1_000;

    /// What a store of this process sends and hears with.
    #[derive(Default)]
    pub(super) struct Post {
        sender: Option<UnixDatagram>,
        /// The path of its own socket, once it listens.
        address: Option<PathBuf>,
        /// Binding failed and is not tried again.
        deaf: bool,
        /// When dead sockets were last looked for.
        swept: Option<Instant>,
    }

    impl WakeChannel {
        /// Wakes those of other processes, and of other stores in this one.
        pub(in super::super) fn wake_afar(&self, wake_ups: &WakeUps) {
            if wake_ups.is_empty() {
                return;
            }
            let mut post = self.post.lock().unwrap_or_else(PoisonError::into_inner);
            let post = post.get_or_insert_default();
            // What cannot be sent is a lost wake-up, which costs one wait.
            let Ok(sockets) = fs::read_dir(self.folder()) else { return };
            if post.sender.is_none() {
                post.sender = unbound().ok();
            }
            let Some(sender) = &post.sender else { return };
            let texts = datagrams(&self.site.fleet, wake_ups);
            for socket in sockets.flatten() {
                let path = socket.path();
                if post.address.as_ref() == Some(&path) {
                    continue;
                }
                let refuses = |text: &String| is_refused(&sender.send_to(text.as_bytes(), &path).map(drop));
                if texts.iter().any(refuses) {
                    remove_dead(&socket);
                }
            }
        }

        /// Removes sockets of processes that died.
        fn sweep(&self) {
            let Ok(sockets) = fs::read_dir(self.folder()) else { return };
            for socket in sockets.flatten().take(MOST_SWEPT) {
                if unbound().is_ok_and(|asks| is_refused(&asks.connect(socket.path()))) {
                    remove_dead(&socket);
                }
            }
        }

        /// Sees to it that this store is heard of; whether it is.
        pub(super) fn listen(&self) -> bool {
            let mut post = self.post.lock().unwrap_or_else(PoisonError::into_inner);
            let post = post.get_or_insert_default();
            if post.address.is_none() && !post.deaf {
                let address = self.folder().join(SessionId::random().to_string().get(..16).unwrap_or_default());
                let ear = Arc::clone(&self.ear);
                let fleet = self.site.fleet.clone();
                // Without the store there is no folder for the sockets, and a folder may go as its last one leaves.
                fs::create_dir(self.folder()).ok();
                let bound = match UnixDatagram::bind(&address) {
                    Err(error) if error.kind() == ErrorKind::NotFound => return false,
                    bound => bound,
                };
                let heard = bound.and_then(|socket| {
                    let listener = thread::Builder::new().name("baton-wake".to_owned());
                    listener.spawn(move || listen(&ear, &fleet, &socket))
                });
                match heard {
                    Ok(_) => post.address = Some(address),
                    Err(_) => {
                        fs::remove_file(&address).ok();
                        post.deaf = true;
                    }
                }
            }
            if post.swept.is_none_or(|swept| swept.elapsed() >= SWEEP_EACH) {
                self.sweep();
                post.swept = Some(Instant::now());
            }
            post.address.is_some()
        }
    }

    impl Drop for WakeChannel {
        fn drop(&mut self) {
            self.ear.heard().over = true;
            self.ear.begun.notify_all();
            let post = self.post.get_mut().unwrap_or_else(PoisonError::into_inner);
            if let Some(address) = post.take().and_then(|post| post.address) {
                // Gets the thread out of its receive; a full buffer does that as well.
                unbound().and_then(|sender| sender.send_to(&[], &address)).ok();
                fs::remove_file(&address).ok();
                self.sweep();
                // The folder goes with its last socket; while it holds others, this fails and is meant to.
                fs::remove_dir(self.folder()).ok();
            }
        }
    }

    fn unbound() -> io::Result<UnixDatagram> {
        let sender = UnixDatagram::unbound()?;
        sender.set_nonblocking(true)?;
        Ok(sender)
    }

    /// Whether nobody listens any more.
    fn is_refused(asked: &io::Result<()>) -> bool {
        asked.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    }

    /// Removes a socket that nobody listens to. One that is just being made refuses for a moment, so a new one stays.
    fn remove_dead(socket: &fs::DirEntry) {
        let made = socket.metadata().and_then(|found| found.modified());
        let is_new = made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age < NEW));
        if !is_new && socket.file_type().is_ok_and(|kind| kind.is_socket()) {
            // Another one may have removed it.
            fs::remove_file(socket.path()).ok();
        }
    }

    /// The fleet, then a session and a queue a line.
    fn datagrams(fleet: &Name, wake_ups: &WakeUps) -> Vec<String> {
        let mut texts = vec![fleet.to_string()];
        for (session, queue) in wake_ups {
            let line = format!("\n{session} {queue}");
            match texts.last_mut().filter(|text| text.len() + line.len() <= MAX_DATAGRAM) {
                Some(text) => text.push_str(&line),
                None => texts.push(format!("{fleet}{line}")),
            }
        }
        texts
    }

    /// Passes on what comes in, as long as somebody waits: while all are busy the socket's buffer may run full.
    fn listen(ear: &Ear, fleet: &Name, socket: &UnixDatagram) {
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            let mut heard = ear.heard();
            while heard.waiting == 0 && !heard.over {
                heard = ear.begun.wait(heard).unwrap_or_else(PoisonError::into_inner);
            }
            if heard.over {
                return;
            }
            drop(heard);
            let Ok(len) = socket.recv(&mut buffer) else { continue };
            let text = buffer.get(..len).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
            let mut lines = text.split('\n');
            if lines.next() == Some(fleet.as_str()) {
                let wake_up = |line: &str| {
                    let (session, queue) = line.split_once(' ')?;
                    Some((session.parse().ok()?, queue.parse().ok()?))
                };
                let wake_ups: WakeUps = lines.filter_map(wake_up).collect();
                ear.wake(wake_ups.iter().map(|(session, queue)| (*session, queue)));
            }
        }
    }
}
