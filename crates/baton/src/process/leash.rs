//! How a parent tells its child to end: by lines on a pipe that is the child's standard input.
//!
//! Both ends are here. The end of the pipe tells the child that its parent is gone, however it went.

use std::io::{self, BufRead as _};

use tokio::{io::AsyncWriteExt as _, process::ChildStdin};

use super::Child;

/// What is told over a leash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Finish what runs, then end.
    Drain,
    /// End at once.
    Now,
}

impl Word {
    const ALL: [Self; 2] = [Self::Drain, Self::Now];

    const fn text(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Now => "now",
        }
    }
}

/// The parent's end; dropped, it tells the child that its parent is gone.
#[derive(Debug)]
pub struct Leash(Option<ChildStdin>);

impl Leash {
    /// The leash of a child whose standard input is a pipe.
    #[must_use]
    pub fn of(child: &mut Child) -> Self {
        Self(child.input())
    }

    /// Tells the child; one that has just ended hears nothing, and need not.
    ///
    /// # Cancel safety
    /// The child may or may not have heard it.
    pub async fn say(&mut self, word: Word) {
        if let Some(pipe) = &mut self.0 {
            pipe.write_all(format!("{}\n", word.text()).as_bytes()).await.ok();
        }
    }
}

/// The child's end: what this process is told on its standard input, until its parent is gone. Blocks its thread.
pub(crate) fn words() -> impl Iterator<Item = Word> {
    let lines = io::stdin().lock().lines().map_while(Result::ok);
    lines.filter_map(|line| Word::ALL.into_iter().find(|word| word.text() == line))
}
