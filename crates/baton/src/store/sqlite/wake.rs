//! Waking those who wait: by a count within the process, by a datagram across processes.
//!
//! Every store that has ever waited binds a socket in the folder `<store>-wake`; whoever commits something that
//! workers may take sends one datagram to each. Sending never blocks: a socket whose buffer is full has wake-ups
//! enough. Sockets of processes that died are removed by the next sender. A lost wake-up costs one wait, at most a
//! second. Where no socket can be bound, waiting looks every 5 ms.

use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::{Site, file};
use crate::{message::Name, store::StoreError};

/// How often one looks who cannot be woken.
const POLL: Duration = Duration::from_millis(5);

/// Rings and hears, for one store of this process.
pub(super) struct Bell {
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
    rung: Notify,
}

#[derive(Default)]
struct Heard {
    waiting: usize,
    over: bool,
    /// How often each queue was rung for, and how often all were.
    queues: HashMap<Name, u64>,
    all: u64,
}

impl Ear {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a ring and wakes all who wait; nobody named means all queues.
    fn ring<'a>(&self, queues: impl IntoIterator<Item = &'a Name>) {
        let mut heard = self.heard();
        let mut named = false;
        for queue in queues {
            named = true;
            *heard.queues.entry(queue.clone()).or_default() += 1;
        }
        if !named {
            heard.all += 1;
        }
        drop(heard);
        self.rung.notify_waiters();
    }

    fn tally(&self, queues: &[Name]) -> u64 {
        let heard = self.heard();
        heard.all + queues.iter().filter_map(|queue| heard.queues.get(queue)).sum::<u64>()
    }
}

/// Somebody waits, until dropped.
struct Waiting<'a>(&'a Ear);

impl<'a> Waiting<'a> {
    fn begin(ear: &'a Ear) -> Self {
        ear.heard().waiting += 1;
        ear.begun.notify_all();
        Self(ear)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.heard().waiting -= 1;
    }
}

impl Bell {
    pub(super) fn new(site: Arc<Site>) -> Self {
        Self {
            site,
            folder: OnceLock::new(),
            ear: Arc::default(),
            #[cfg(unix)]
            post: Mutex::new(None),
        }
    }

    /// Wakes those of this store who wait for one of the queues.
    pub(super) fn ring_here(&self, queues: &BTreeSet<Name>) {
        if !queues.is_empty() {
            self.ear.ring(queues);
        }
    }

    /// Waits until one of the queues is rung for or, after the wait has been made known, `look` finds messages; at
    /// most for `limit`. Whatever is committed before the look is seen by it, whatever comes later rings.
    pub(super) async fn wait<F>(&self, queues: &[Name], limit: Duration, look: impl Fn() -> F)
    where
        F: Future<Output = Result<bool, StoreError>>,
    {
        let end = Instant::now() + limit;
        let _waiting = Waiting::begin(&self.ear);
        let before = self.ear.tally(queues);
        let listening = self.listen();
        // On an error the caller's next call learns the cause.
        while !look().await.unwrap_or(true) {
            let next = if listening { end } else { end.min(Instant::now() + POLL) };
            loop {
                let rung = self.ear.rung.notified();
                tokio::pin!(rung);
                rung.as_mut().enable();
                if self.ear.tally(queues) != before {
                    return;
                }
                if tokio::time::timeout_at(next, rung).await.is_err() {
                    break;
                }
            }
            if Instant::now() >= end {
                return;
            }
        }
    }

    /// Where the sockets of this store are: beside the file, or in the folder for temporary files if their paths
    /// would be too long.
    fn folder(&self) -> &PathBuf {
        self.folder.get_or_init(|| {
            let path = file::real_path(&self.site.path);
            let beside = file::sidecar(&path, "-wake");
            if beside.as_os_str().len() <= 80 {
                return beside;
            }
            let digest = crate::message::Digest::of(path.as_os_str().as_encoded_bytes()).to_string();
            std::env::temp_dir().join(format!("baton-{}", digest.get(..20).unwrap_or_default()))
        })
    }
}

#[cfg(not(unix))]
impl Bell {
    /// Nobody can be told.
    pub(super) fn ring_afar(&self, _: &BTreeSet<Name>) {}

    fn listen(&self) -> bool {
        false
    }
}

#[cfg(unix)]
mod post {
    //! The sockets.

    use std::{
        collections::BTreeSet,
        fs,
        io::{self, ErrorKind},
        os::unix::{fs::FileTypeExt as _, net::UnixDatagram},
        path::PathBuf,
        sync::{Arc, PoisonError},
        thread,
    };

    use super::{Bell, Ear};
    use crate::message::{Name, SessionId};

    /// The longest list of queues sent; a longer one rings for all.
    const MAX_DATAGRAM: usize = 1_024;

    /// What a store of this process sends and hears with.
    #[derive(Default)]
    pub(super) struct Post {
        sender: Option<UnixDatagram>,
        /// The path of its own socket, once it listens.
        address: Option<PathBuf>,
        /// Binding failed and is not tried again.
        deaf: bool,
    }

    impl Bell {
        /// Wakes those of other processes, and of other stores in this one, who wait for one of the queues.
        pub(in super::super) fn ring_afar(&self, queues: &BTreeSet<Name>) {
            if queues.is_empty() {
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
            let text = datagram(&self.site.fleet, queues);
            for socket in sockets.flatten() {
                let path = socket.path();
                if post.address.as_ref() == Some(&path) {
                    continue;
                }
                let dead =
                    sender.send_to(text.as_bytes(), &path).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused);
                if dead && socket.file_type().is_ok_and(|kind| kind.is_socket()) {
                    fs::remove_file(path).ok();
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
            post.address.is_some()
        }
    }

    impl Drop for Bell {
        fn drop(&mut self) {
            self.ear.heard().over = true;
            self.ear.begun.notify_all();
            let post = self.post.get_mut().unwrap_or_else(PoisonError::into_inner);
            if let Some(address) = post.take().and_then(|post| post.address) {
                // Gets the thread out of its receive; a full buffer does that as well.
                unbound().and_then(|sender| sender.send_to(&[], &address)).ok();
                fs::remove_file(&address).ok();
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

    /// The fleet, then a queue a line; no queue stands for all of them.
    fn datagram(fleet: &Name, queues: &BTreeSet<Name>) -> String {
        let names = [fleet].into_iter().chain(queues).map(Name::as_str).collect::<Vec<_>>().join("\n");
        if names.len() <= MAX_DATAGRAM { names } else { fleet.to_string() }
    }

    /// Passes on what comes in, as long as somebody waits: while all are busy the socket's buffer may run full.
    fn listen(ear: &Ear, fleet: &Name, socket: &UnixDatagram) {
        let mut buffer = [0; MAX_DATAGRAM];
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
            let mut names = text.split('\n');
            if names.next() == Some(fleet.as_str()) {
                let queues: Vec<Name> = names.filter_map(|name| name.parse().ok()).collect();
                ear.ring(&queues);
            }
        }
    }
}
