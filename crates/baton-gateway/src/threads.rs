//! The threads that speak to peers.
//!
//! A connection is on one of them from its begin to its end, and so is what is answered at once: no other thread is
//! woken for it, which costs more than most answers do. What its requests begin, such as calls to the store and
//! computations, belongs to the runtime on which the gateway runs, and outlives the connection. They end with the
//! gateway.

use std::{future::poll_fn, io, num::NonZero, pin::pin, thread};

use tokio::{
    net::TcpStream,
    runtime::{Builder, Handle},
    sync::watch,
    task::JoinSet,
};

/// The threads of one gateway.
#[derive(Debug)]
pub(crate) struct Threads {
    runtimes: Vec<Handle>,
    next: usize,
    /// They end when this is dropped.
    _ends: watch::Sender<()>,
}

impl Threads {
    /// One for every two cores: the others are for what is not answered at once.
    pub(crate) fn start() -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let ends = watch::Sender::new(());
        let runtimes = (0..cores.div_ceil(2)).map(|_| start(ends.subscribe())).collect::<io::Result<_>>()?;
        Ok(Self { runtimes, next: 0, _ends: ends })
    }

    /// Has a connection served by the next of them.
    pub(crate) fn serve<S: Future<Output = ()> + Send + 'static>(
        &mut self, stream: TcpStream, serve: impl FnOnce(TcpStream) -> S + Send + 'static, open: &mut JoinSet<()>,
    ) -> io::Result<()> {
        let (home, stream) = (Handle::current(), stream.into_std()?);
        let served = async move {
            // One that the system does not watch over is closed.
            let Ok(stream) = TcpStream::from_std(stream) else { return };
            let mut serving = pin!(serve(stream));
            poll_fn(|context| {
                let _at_home = home.enter();
                serving.as_mut().poll(context)
            })
            .await;
        };
        self.next = (self.next + 1) % self.runtimes.len();
        let runtime = self.runtimes.get(self.next).cloned();
        open.spawn_on(served, &runtime.unwrap_or_else(Handle::current));
        Ok(())
    }
}

fn start(mut ends: watch::Receiver<()>) -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let thread = thread::Builder::new().name("baton-http".to_owned());
    thread.spawn(move || runtime.block_on(async move { while ends.changed().await.is_ok() {} }))?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncReadExt as _, net::TcpListener, sync::oneshot};

    use super::*;

    #[tokio::test]
    async fn a_connection_has_a_thread_of_its_own_and_what_it_begins_does_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let (mut threads, mut open, (tell, told)) = (Threads::start().unwrap(), JoinSet::new(), oneshot::channel());
        let here = thread::current().id();
        let serve = move |mut stream: TcpStream| async move {
            let begun = tokio::spawn(async { thread::current().id() }).await.unwrap();
            tell.send((thread::current().name().map(str::to_owned), begun)).unwrap();
            stream.read_u8().await.ok();
        };
        threads.serve(stream, serve, &mut open).unwrap();
        assert_eq!(told.await.unwrap(), (Some("baton-http".to_owned()), here));
        drop(peer);
        open.join_next().await.unwrap().unwrap();
    }
}
