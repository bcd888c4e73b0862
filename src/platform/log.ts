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

/** One JSON line for each event. Secrets are removed by field name and by shape. */
export function createLog(options: {
  level: string;
  sink?: LogSink;
  /** More fields for every line, such as its trace id. */
  more?: (() => object) | undefined;
}): Log {
  const sink = options.sink ?? process.stdout;
  // A full disk or a closed reader of the log must not stop the server.
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
