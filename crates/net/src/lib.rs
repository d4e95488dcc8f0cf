//! Tokio listeners and clients that drive the remoting protocol.
