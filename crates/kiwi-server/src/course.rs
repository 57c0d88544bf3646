//! How a call goes on: carried by the request that follows it, or by itself once no request does.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};

/// A call on its way to its outcome. Most calls are over before their request is, and need no task of their own.
pub(crate) struct Course<T>(State<T>);

enum State<T> {
    /// Whoever waits for it carries it on.
    Carried(Pin<Box<dyn Future<Output = T> + Send>>),
    /// It goes on, whether or not anybody waits for it.
    Alone(JoinHandle<T>),
    Over,
}

impl<T: Send + 'static> Course<T> {
    /// Of this call, which has not begun.
    pub fn new(call: impl Future<Output = T> + Send + 'static) -> Self {
        Self(State::Carried(Box::pin(call)))
    }

    /// From here on it goes on by itself.
    pub fn let_go(&mut self) {
        self.0 = match (std::mem::replace(&mut self.0, State::Over), Handle::try_current()) {
            (State::Carried(call), Ok(runtime)) => State::Alone(runtime.spawn(call)),
            // Everything ends.
            (State::Carried(_), Err(_)) => State::Over,
            (other, _) => other,
        };
    }
}

impl<T> Future for Course<T> {
    /// An error means that the call was lost.
    type Output = Result<T, Lost>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.0 {
            // As in a task of its own: who follows a call does not break down with it.
            State::Carried(call) => catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context).map(Ok)))
                .unwrap_or(Poll::Ready(Err(Lost))),
            State::Alone(task) => Pin::new(task).poll(context).map_err(|_: JoinError| Lost),
            State::Over => Poll::Ready(Err(Lost)),
        };
        if outcome.is_ready() {
            self.0 = State::Over;
        }
        outcome
    }
}

/// The call ended without an outcome.
#[derive(Debug)]
pub(crate) struct Lost;

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_call_goes_on_when_its_request_does_not() {
        let (go, wait) = oneshot::channel::<()>();
        let (ended, end) = oneshot::channel();
        let mut course = Course::new(async move {
            let _ = wait.await;
            let _ = ended.send(());
            7
        });
        // Carried for a while, and then no more.
        tokio::select! {
            biased;
            _ = &mut course => panic!("it waits"),
            () = tokio::task::yield_now() => {}
        }
        course.let_go();
        course.let_go();
        go.send(()).unwrap();
        end.await.unwrap();
        assert_eq!((&mut course).await.ok(), Some(7));
        assert!(course.await.is_err(), "there is one outcome");
    }

    #[tokio::test]
    async fn a_call_that_breaks_down_is_lost_whoever_carries_it() {
        for is_alone in [false, true] {
            let mut course: Course<u8> = Course::new(async { panic!("on purpose") });
            if is_alone {
                course.let_go();
            }
            assert!((&mut course).await.is_err());
            course.let_go();
            assert!(course.await.is_err());
        }
    }
}
