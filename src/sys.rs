//! One function per system call; the only place with `unsafe`.
