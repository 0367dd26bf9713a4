//! Starts and stops the server.
