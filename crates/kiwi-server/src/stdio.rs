//! The endpoint over standard streams: one client, one connection.

use rmcp::service::{ServiceExt as _, serve_server};
use std::sync::Arc;
use std::time::Duration;

use crate::error::ServerError;
use crate::face::{Face, Shape};
use crate::server::Server;
use crate::wire::Wire;

/// How long calls may go on once the client has gone, and how long their ends may take.
const LAST: Duration = Duration::from_secs(5);

/// Serves the client at the other end of the standard streams until it goes, or `stop` resolves.
pub async fn serve_stdio(
    server: Arc<Server>,
    shape: Shape,
    stop: impl Future<Output = ()>,
) -> Result<(), ServerError> {
    let tending = tokio::spawn(Arc::clone(&server).tend());
    let face = Face::connected(Arc::clone(&server), shape);
    let serving = async {
        let (read, write) = rmcp::transport::io::stdio_pipes();
        let running = serve_server(face.into_dyn(), Wire::new(read, write)).await;
        match running {
            Ok(running) => {
                let _ = running.waiting().await;
                Ok(())
            }
            // Who goes before saying anything has nothing to complain about.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(ServerError::Handshake { problem: error.to_string() }),
        }
    };
    let result = tokio::select! {
        result = serving => result,
        () = stop => Ok(()),
    };
    tending.abort();
    server.drain(Duration::ZERO, LAST).await;
    result
}
