#!/usr/bin/env node
import type { Io } from './io.ts';
import { run } from './program.ts';

const { stdin, stdout, stderr } = process;

const io: Io = {
  env: process.env,
  out: (text) =>
    new Promise((resolve, reject) => {
      stdout.write(text, (error) => (error ? reject(error) : resolve()));
    }),
  err: (text) => void stderr.write(text),
  outTerminal: stdout.isTTY ? { columns: stdout.columns || 80 } : null,
  errIsTerminal: stderr.isTTY,
  canAsk: stdin.isTTY && stderr.isTTY,
  async ask(question) {
    const { createInterface } = await import('node:readline/promises');
    const lines = createInterface({ input: stdin, output: stderr });
    try {
      return await lines.question(question);
    } finally {
      lines.close();
    }
  },
  async readInput() {
    const chunks: Buffer[] = [];
    for await (const chunk of stdin) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  },
  now: () => Date.now(),
  wait: async (ms) => await new Promise((resolve) => setTimeout(resolve, ms)),
};

// A reader that has seen enough, such as `head`, is no failure.
stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
process.exitCode = await run(process.argv.slice(2), io);
