//! All that runs inside a sandbox: PID 1 and the frames it speaks.
