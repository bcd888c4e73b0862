import { pino, stdTimeFunctions } from 'pino';
import { maskKeys } from '../core/key-shape.ts';

export type Log = {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
};

export type LogSink = { write(line: string): void };

const tokenFields = [
  'authorization',
  'cookie',
  'set-cookie',
  'token',
  'password',
  'secret',
  'client_secret',
  'refresh_token',
];

/** One JSON line an event, secrets removed by field name and by shape. */
export function createLog(options: {
  level: string;
  sink?: LogSink;
  /** More fields of every line, such as the trace it belongs to. */
  more?: (() => object) | undefined;
}): Log {
  const sink = options.sink ?? process.stdout;
  // A log that finds no room, or whose reader went away, is no reason to stop serving.
  const { stdout } = process;
  if (options.sink === undefined && stdout.listenerCount('error') === 0) stdout.on('error', () => undefined);
  return pino(
    {
      level: options.level,
      base: null,
      ...(options.more === undefined ? {} : { mixin: options.more }),
      timestamp: stdTimeFunctions.isoTime,
      redact: {
        paths: tokenFields.flatMap((field) => [`["${field}"]`, `*["${field}"]`, `*.*["${field}"]`]),
        censor: '[redacted]',
      },
    },
    { write: (line: string) => void sink.write(maskKeys(line)) },
  );
}
