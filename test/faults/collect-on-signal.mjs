// Loaded into a server before its program (node --expose-gc --import): collects garbage at SIGUSR2, so that what is measured
// after it is what is kept.
process.on('SIGUSR2', () => globalThis.gc());
