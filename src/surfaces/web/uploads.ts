import { finished, PassThrough, type Readable } from 'node:stream';
import multipart, { type MultipartFile, type MultipartValue } from '@fastify/multipart';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../core/errors.ts';
import type { RequestUpload, UploadPart, UploadType } from '../../platform/http.ts';

/**
 * Bodies that are not JSON (contract 6): they are not read into memory and not kept, the route's handler takes them
 * piece by piece. A client that sends nothing for half a minute is cut off (threat T51).
 */
const idleMs = 30_000;
/** Of a form: names and values that say what to do with the file. */
const formLimits = { fields: 8, fieldNameSize: 100, fieldSize: 1_000, files: 1, parts: 9, headerPairs: 20 };

declare module 'fastify' {
  interface FastifyRequest {
    upload: RequestUpload | null;
  }
}

/** Whether the body of a request is one that its route takes as it arrives. */
export function isUpload({ headers, routeOptions }: FastifyRequest): boolean {
  const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase();
  return routeOptions.config.route?.uploads?.some((one) => one === type) ?? false;
}

/** Lets the routes of `scope` take `types` beside JSON. */
export async function acceptUploads(scope: FastifyInstance, types: readonly UploadType[]): Promise<void> {
  if (types.includes('multipart/form-data')) {
    await scope.register(multipart, {
      limits: { ...formLimits, fileSize: Number.POSITIVE_INFINITY },
      throwFileSizeLimit: false,
    });
    scope.addHook('preHandler', (request, _reply, done) => {
      if (request.isMultipart()) request.upload = { parts: () => ofForm(request), left: untold };
      done();
    });
  }
  for (const type of types) {
    if (type === 'multipart/form-data') continue;
    scope.addContentTypeParser(type, (request, _payload, done) => {
      request.upload = { parts: () => ofRawBody(request, type), left: untold };
      done(null, undefined);
    });
  }
  scope.addHook('preHandler', (request, reply, done) => {
    if (request.upload !== null) {
      cutWhenIdle(request);
      request.upload = { ...request.upload, left: leaving(reply) };
    }
    done();
  });
}

/** Until the connection is watched. */
const untold = AbortSignal.any([]);

/** The body may be here whole, and work on it under way, when its client goes. */
function leaving({ raw }: FastifyReply): AbortSignal {
  const leaver = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) leaver.abort(brokenOff(undefined));
  });
  return leaver.signal;
}

async function* ofRawBody(request: FastifyRequest, contentType: UploadType): AsyncGenerator<UploadPart> {
  yield { kind: 'file', name: '', fileName: '', contentType, stream: whole(request) };
}

async function* ofForm(request: FastifyRequest): AsyncGenerator<UploadPart> {
  try {
    for await (const part of request.parts()) yield isFile(part) ? fileOf(part) : fieldOf(part);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw asFormError(error);
  }
}

function isFile(part: MultipartFile | MultipartValue): part is MultipartFile {
  return part.type === 'file';
}

function fileOf({ fieldname, filename, mimetype, file }: MultipartFile): UploadPart {
  return {
    kind: 'file',
    name: fieldname,
    fileName: filename ?? '',
    contentType: mimetype.toLowerCase(),
    stream: followed(file),
  };
}

/**
 * A form that stops inside its file destroys the file's stream, perhaps before anybody listens to it; then whoever reads
 * it would wait for ever.
 */
function followed(file: Readable): Readable {
  const bytes = unheard();
  finished(file, { writable: false }, (error) => {
    if (error) bytes.destroy(brokenOff(error));
  });
  bytes.once('close', () => {
    if (!file.readableEnded) file.destroy();
  });
  return file.pipe(bytes);
}

/** Whoever reads it later finds it failed. A handler that refuses without reading never does, and that must end nothing. */
function unheard(): PassThrough {
  return new PassThrough().on('error', () => undefined);
}

function fieldOf({ fieldname, value, valueTruncated }: MultipartValue): UploadPart {
  if (typeof value !== 'string' || valueTruncated)
    throw new AppError('invalid_body', { message: `The form field ${fieldname.slice(0, 50)} is too long.` });
  return { kind: 'field', name: fieldname, value };
}

function asFormError(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ECONNRESET') return brokenOff(error);
  if (!code.startsWith('FST_') && !(error instanceof Error && /multipart|boundary|form/i.test(error.message)))
    return error;
  return new AppError('invalid_body', {
    message: 'The form is not valid.',
    hint: 'Send one file in the field "file", and beside it name, visibility, ttlHours and spa where wanted.',
    cause: error,
  });
}

/** The body as it comes; what breaks it off is told as that, and not as a fault of the archive. */
function whole({ raw }: FastifyRequest): Readable {
  const bytes = unheard();
  raw.on('error', (error: Error) => bytes.destroy(brokenOff(error)));
  raw.on('close', () => {
    if (!raw.complete) bytes.destroy(brokenOff(undefined));
  });
  return raw.pipe(bytes);
}

function brokenOff(cause: unknown): AppError {
  return new AppError('request_timeout', {
    message: 'The upload broke off before its end.',
    hint: 'Nothing was changed. Send it again.',
    cause,
  });
}

function cutWhenIdle({ raw }: FastifyRequest): void {
  let before = -1;
  const timer = setInterval(() => {
    const { bytesRead } = raw.socket;
    if (bytesRead === before) raw.destroy(new Error(`nothing arrived for ${idleMs} ms`));
    before = bytesRead;
  }, idleMs);
  timer.unref();
  raw.once('end', () => clearInterval(timer)).once('close', () => clearInterval(timer));
}
