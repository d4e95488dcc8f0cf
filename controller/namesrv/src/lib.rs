//! The NameServer: route table and its server.
