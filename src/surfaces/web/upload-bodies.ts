import { finished, PassThrough, type Readable } from 'node:stream';
import multipart, { type MultipartFile, type MultipartValue } from '@fastify/multipart';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../core/errors.ts';
import type { RequestUpload, UploadPart, UploadType } from '../../platform/http.ts';
import { problemInText } from './input.ts';
import { hasBody, isJson, isUpload, takesJson, unsupportedType } from './body-types.ts';

/**
 * Bodies that are not JSON (contract 6). They are neither read into memory nor stored here: the route's handler takes
 * them piece by piece. A client that sends nothing for half a minute is disconnected (threat T51).
 */
const idleMs = 30_000;
/** Milliseconds in which the rest of a refused body is read and discarded. */
const lingerMs = 5_000;
/** Limits of a form, whose fields say what to do with the file. */
const formLimits = { fields: 8, fieldNameSize: 100, fieldSize: 1_000, files: 1, parts: 9, headerPairs: 20 };

declare module 'fastify' {
  interface FastifyRequest {
    upload: Omit<RequestUpload, 'reauthorize'> | null;
  }
}

/** Allows the routes of `scope` to take `types` besides JSON. */
export async function acceptUploads(scope: FastifyInstance, types: readonly UploadType[]): Promise<void> {
  // Runs before the body is read: otherwise a large body of a wrong type would get the error for its size.
  scope.addHook('preParsing', (request, _reply, _payload, done) => {
    const isTaken = !hasBody(request) || isUpload(request) || (takesJson(request) && isJson(request));
    done(isTaken ? null : unsupportedType(request));
  });
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
      dropRest(request, reply);
      request.upload = { ...request.upload, left: leaving(reply) };
    }
    done();
  });
}

/** The signal until the connection is watched. */
const untold = AbortSignal.any([]);

/** Aborts when the client disconnects, also after the whole body has arrived and while the handler works on it. */
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
 * A form that stops inside its file destroys the file's stream, perhaps before a listener is attached. Without this,
 * its reader would wait forever.
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

/**
 * A later reader gets the error. A handler that refuses without reading never does, and the unhandled error must not
 * end the process.
 */
function unheard(): PassThrough {
  return new PassThrough().on('error', () => undefined);
}

function fieldOf({ fieldname, value, valueTruncated }: MultipartValue): UploadPart {
  if (typeof value !== 'string' || valueTruncated)
    throw new AppError('invalid_body', { message: `The form field ${fieldname.slice(0, 50)} is too long.` });
  // The form's reader puts U+FFFD in the place of bytes that are not UTF-8.
  const problem = value.includes('\uFFFD') ? 'must be UTF-8' : problemInText(value);
  if (problem !== null)
    throw new AppError('invalid_body', {
      message: `${fieldname.slice(0, 50)}: ${problem}`,
      details: { fields: [{ field: fieldname.slice(0, 100), problem }] },
    });
  return { kind: 'field', name: fieldname, value };
}

function asFormError(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ECONNRESET') return brokenOff(error);
  if (!code.startsWith('FST_') && !(error instanceof Error && /multipart|boundary|form/i.test(error.message)))
    return error;
  return new AppError('invalid_body', {
    message: 'The form is not valid.',
    hint: 'Send one file in the field "file". The fields name, visibility, ttlHours and spa are optional.',
    cause: error,
  });
}

/** The raw body. A broken connection is reported as such, and not as a fault of the archive. */
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
    message: 'The upload ended before all of its bytes arrived.',
    hint: 'Nothing was changed. Send the upload again.',
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

/**
 * Handles an upload that is refused before its end. Closed immediately, the connection could lose the response. Left open,
 * it would block the next request that a proxy sends on it behind the rest of the body.
 */
function dropRest({ raw }: FastifyRequest, reply: FastifyReply): void {
  reply.raw.once('finish', () => {
    if (raw.complete || raw.destroyed) return;
    raw.unpipe();
    raw.resume();
    const timer = setTimeout(() => raw.destroy(), lingerMs);
    timer.unref();
    raw.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
  });
}
