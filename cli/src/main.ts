#!/usr/bin/env node
import type { Io } from './core/io.ts';
import { run } from './program.ts';

const { stdout } = process;

const io: Io = {
  env: process.env,
  out: (text) =>
    new Promise((resolve, reject) => {
      stdout.write(text, (error) => (error ? reject(error) : resolve()));
    }),
  err: (text) => void process.stderr.write(text),
  outTerminal: stdout.isTTY ? { columns: stdout.columns || 80 } : null,
  // Node loads many of its modules for standard input and errors; --version needs neither.
  get errIsTerminal() {
    return process.stderr.isTTY;
  },
  get canAsk() {
    return process.stdin.isTTY && process.stderr.isTTY;
  },
  async ask(question) {
    const { createInterface } = await import('node:readline/promises');
    const lines = createInterface({ input: process.stdin, output: process.stderr });
    try {
      return await lines.question(question);
    } finally {
      lines.close();
    }
  },
  async readInput() {
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  },
  now: () => Date.now(),
  wait: async (ms) => await new Promise((resolve) => setTimeout(resolve, ms)),
};

// A reader that has seen enough, such as `head`, is no failure.
stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
void run(process.argv.slice(2), io).then((exitCode) => {
  process.exitCode = exitCode;
});
