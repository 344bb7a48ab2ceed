//! A connection whose peer must go on reading, and may end what it sends before it is answered.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep},
};

/// How long the end of what a peer sends is kept back while it has not been answered: it may be listening still, or
/// gone, which is the same to see.
const LISTENS: Duration = Duration::from_secs(2);

/// The requests of a connection whose answers are not complete.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnderWay(Arc<AtomicUsize>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Asked(Arc<AtomicUsize>);

impl UnderWay {
    /// One more.
    pub(crate) fn begin(&self) -> Asked {
        self.0.fetch_add(1, Ordering::Relaxed);
        Asked(Arc::clone(&self.0))
    }

    fn is_some(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Fails to write once its peer has taken nothing for `time`, while something is to be sent.
pub(crate) struct Stalling {
    stream: TcpStream,
    time: Duration,
    /// Runs while a write waits.
    waits: Option<Pin<Box<Sleep>>>,
    under_way: UnderWay,
    /// Whether something has come in since something was sent.
    owes: bool,
    /// Runs while the end is kept back.
    ends: Option<Pin<Box<Sleep>>>,
}

impl Stalling {
    pub(crate) const fn new(stream: TcpStream, time: Duration, under_way: UnderWay) -> Self {
        Self { stream, time, waits: None, under_way, owes: false, ends: None }
    }

    fn judged<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waits = None;
            return polled;
        }
        let deadline = Instant::now() + self.time;
        let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        ready!(waits.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Stalling {
    fn poll_read(
        mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if self.ends.is_none() {
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
            if buffer.filled().len() > before {
                self.owes = true;
                return Poll::Ready(Ok(()));
            }
            if buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        // One read may bring several requests, of which one was answered.
        if self.owes || self.under_way.is_some() {
            let ends = self.ends.get_or_insert_with(|| Box::pin(tokio::time::sleep(LISTENS)));
            ready!(ends.as_mut().poll(context));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stalling {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.owes &= polled.is_pending();
        self.judged(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>, context: &mut Context<'_>, slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.owes &= polled.is_pending();
        self.judged(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
