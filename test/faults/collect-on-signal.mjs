// Loaded into a server before its program (node --expose-gc --import). Collects garbage at SIGUSR2, so that a measurement
// afterwards shows live objects only.
process.on('SIGUSR2', () => globalThis.gc());
