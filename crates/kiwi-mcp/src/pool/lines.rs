//! Speaking with a process: one message a line.

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::calls::Calls;
use super::heard::{Form, Heard, LONGEST, Sorted, is_answer, note};
use super::lane::{Lane, Pipe};

/// A connection over two streams.
pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    write: Pipe<W>,
    line: Vec<u8>,
    /// The rest of the line is thrown away: it is too long.
    is_skipping: bool,
    /// Messages that came together.
    queue: VecDeque<ServerJsonRpcMessage>,
    /// The request whose answer the library wants in another form than the server's.
    opening: Option<(RequestId, Form)>,
    /// How long a server may take to say which revisions it speaks.
    patience: Duration,
    /// When it is an older one that says nothing to what it does not know.
    probe: Option<(RequestId, Instant)>,
    /// The question for revisions that nobody waits for any more: its answer would be taken for another's.
    given_up: Option<RequestId>,
    calls: Arc<Calls>,
}

/// So many messages are read before others get their turn.
const IN_A_ROW: usize = 64;

impl<R: AsyncRead + Unpin + Send, W> Lines<R, W> {
    /// A connection; `patience` is how long a server may take to say which revisions it speaks.
    pub fn new(read: R, write: W, calls: Arc<Calls>, patience: Duration) -> Self {
        Self {
            read: BufReader::with_capacity(64 << 10, read),
            write: Arc::new(Mutex::new(Some(write))),
            line: Vec::new(),
            is_skipping: false,
            queue: VecDeque::new(),
            opening: None,
            patience,
            probe: None,
            given_up: None,
            calls,
        }
    }

    /// The way for requests that do not go through the library.
    pub fn lane(&self) -> Lane<W>
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        Lane::new(Arc::clone(&self.write))
    }

    /// Reads until a line is whole; `false` at the end. Can be dropped at any time: what was read stays.
    async fn fill(&mut self) -> bool {
        loop {
            let Ok(available) = self.read.fill_buf().await else { return false };
            if available.is_empty() {
                return false;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            let was_skipping = self.is_skipping;
            if !was_skipping {
                if self.line.len() + taken.len() > LONGEST {
                    self.is_skipping = true;
                    self.line = Vec::new();
                } else {
                    self.line.extend_from_slice(taken);
                }
            }
            let count = taken.len() + usize::from(end.is_some());
            self.read.consume(count);
            if self.is_skipping && !was_skipping {
                self.overlong();
            }
            if end.is_some() {
                if std::mem::take(&mut self.is_skipping) {
                    if !self.queue.is_empty() {
                        return true;
                    }
                    continue;
                }
                return true;
            }
        }
    }

    /// An answer that is too long is an answer all the same, if it is clear to which call.
    fn overlong(&mut self) {
        if let Some(id) = self.calls.only_id() {
            let text = format!("the server's answer is longer than {} MiB", LONGEST >> 20);
            let error = ErrorData::internal_error(text, None);
            if let Some(Err(error)) = self.calls.answer(&id, Err(error)) {
                self.queue.push_back(ServerJsonRpcMessage::error(error, Some(id)));
            }
        }
    }

    /// Reads the line.
    fn digest(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = line.strip_suffix(b"\r").unwrap_or(&line);
        // What is no message is somebody's stray output.
        let heard = match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'[') => serde_json::from_slice::<Vec<Heard>>(text).unwrap_or_default(),
            Some(b'{') => serde_json::from_slice::<Heard>(text).into_iter().collect(),
            _ => Vec::new(),
        };
        for message in heard {
            if let Some(id) = message.answers() {
                if self.given_up.as_ref() == Some(&id) {
                    continue;
                }
                if self.probe.as_ref().is_some_and(|(probe, _)| *probe == id) {
                    self.probe = None;
                }
            }
            let opening = self.opening.as_ref();
            let form = |id: &RequestId| match opening {
                Some((opening, form)) if opening == id => *form,
                _ => Form::Raw,
            };
            match message.sort(&self.calls, form) {
                Sorted::Pass(message) => self.queue.push_back(*message),
                Sorted::Done => {}
            }
        }
        // A usual line's buffer is used again; an unusual one's is not kept.
        if line.capacity() <= 64 << 10 {
            self.line = line;
            self.line.clear();
        }
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        note(&self.calls, &item);
        if let ClientJsonRpcMessage::Request(request) = &item {
            let form = Form::of(&request.request);
            if form != Form::Raw {
                self.opening = Some((request.id.clone(), form));
            }
            if form == Form::Discovery {
                self.probe = Some((request.id.clone(), Instant::now() + self.patience));
            }
        }
        let answers = is_answer(&item).then(|| Arc::clone(&self.calls));
        let bytes = serde_json::to_vec(&item).map_err(io::Error::other).map(|mut bytes| {
            bytes.push(b'\n');
            bytes
        });
        let write = Arc::clone(&self.write);
        async move {
            let bytes = bytes?;
            let mut write = write.lock().await;
            let pipe = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            let written = match pipe.write_all(&bytes).await {
                Ok(()) => pipe.flush().await,
                failed => failed,
            };
            if let Some(calls) = answers {
                calls.count_answer();
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let mut read = 0;
        loop {
            if let Some(message) = self.queue.pop_front() {
                return Some(message);
            }
            self.calls.room().await;
            let deadline = self.probe.as_ref().map(|(_, deadline)| *deadline);
            tokio::select! {
                biased;
                is_there = self.fill() => if !is_there {
                    return None;
                },
                () = at(deadline) => {
                    let (id, _) = self.probe.take()?;
                    self.given_up = Some(id.clone());
                    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer", None);
                    return Some(ServerJsonRpcMessage::error(error, Some(id)));
                }
            }
            self.digest();
            read += 1;
            if read % IN_A_ROW == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // Whoever still writes to a server that does not read holds the lock; its end will end that too.
        if let Ok(mut write) = self.write.try_lock() {
            drop(write.take());
        }
        Ok(())
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
