//! Typed admin calls over the remoting protocol.
