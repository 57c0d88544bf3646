//! Speaking with a process: one message a line.

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::calls::Calls;
use super::heard::{Form, Heard, Sorted, is_answer, note};
use crate::stream::{Incoming, LONGEST, Outgoing, Read};

/// A connection over two streams.
pub(super) struct Lines<R, W> {
    incoming: Incoming<R>,
    outgoing: Outgoing<W>,
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

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    /// A connection; `patience` is how long a server may take to say which revisions it speaks.
    pub fn new(read: R, write: W, calls: Arc<Calls>, patience: Duration) -> Self {
        Self {
            incoming: Incoming::new(read),
            outgoing: Outgoing::new(write),
            queue: VecDeque::new(),
            opening: None,
            patience,
            probe: None,
            given_up: None,
            calls,
        }
    }

    /// The way for requests that do not go through the library.
    pub fn lane(&self) -> Outgoing<W> {
        self.outgoing.clone()
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

    /// Sees to what a line has told.
    fn sort(&mut self, heard: Vec<Heard>) {
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
        let sent = self.outgoing.send(&item);
        async move {
            let written = sent.await;
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
            let heard = tokio::select! {
                biased;
                read = self.incoming.next() => match read {
                    Read::Line(text) => heard(text),
                    Read::Overlong => {
                        self.overlong();
                        continue;
                    }
                    Read::End => return None,
                },
                () = at(deadline) => {
                    let (id, _) = self.probe.take()?;
                    self.given_up = Some(id.clone());
                    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer", None);
                    return Some(ServerJsonRpcMessage::error(error, Some(id)));
                }
            };
            self.sort(heard);
            read += 1;
            if read % IN_A_ROW == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // Whoever still writes to a server that does not read holds it; the server's end will end that too.
        self.outgoing.close();
        Ok(())
    }
}

/// The messages of a line. What is no message is somebody's stray output.
fn heard(text: &[u8]) -> Vec<Heard> {
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => serde_json::from_slice(text).unwrap_or_default(),
        Some(b'{') => serde_json::from_slice(text).into_iter().collect(),
        _ => Vec::new(),
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
