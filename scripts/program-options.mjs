/**
 * Options of Node for the program. V8 lets the objects that die young fill 128 MB before it collects them, and keeps that memory.
 * With 48 MB, collections are more frequent and short.
 */
export const programOptions = ['--max-semi-space-size=16'];
