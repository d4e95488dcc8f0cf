//! Both ends of replication inside a broker group, as machines without sockets or files.
